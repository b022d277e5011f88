"""Connections that are kept to an agent: one that proves dead, and what is left when much went over them."""

import asyncio
import gc
import os
import re
import tracemalloc
from pathlib import Path

import pytest

from gateway.relay.forward import Call
from tests.gateway.conftest import Gateway
from tests.gateway.misbehaving import listening
from tests.gateway.test_relay import awake, replace_agent

pytestmark = pytest.mark.thorough


async def test_message_is_sent_again_when_the_kept_connection_was_dead(
    gateway: Gateway, tmp_path: Path
) -> None:
    ada, tenant = await awake(gateway)
    path = replace_agent(gateway, tenant, tmp_path)
    taken = b'{"turn_id":"t","message_id":"m","conversation_id":"c","state":"running"}'

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one request, promises to stay, and ends at the next."""
        head = f"HTTP/1.1 202 Ok\r\ncontent-type: application/json\r\ncontent-length: {len(taken)}\r\n\r\n"
        rest = await reader.readexactly(_length(seen[-1]))
        assert b"hello" in rest
        writer.write(head.encode() + taken)
        await reader.readuntil(b"\r\n\r\n")

    async with listening(path, once) as seen:
        for number in (1, 2):
            answer = await ada.post("hello", f"m{number}")
            assert (answer.status, answer.json["state"]) == (202, "running")
        assert len(seen) == 2
    assert (await ada.api("GET", "/api/pending-messages")).json["messages"] == []


async def test_memory_and_sockets_come_back_when_much_was_relayed(gateway: Gateway) -> None:
    ada, tenant = await awake(gateway)
    instance = await gateway.parts.instances.current(tenant)
    agent = gateway.spawner.of(tenant).agent
    assert agent is not None

    async def relay(calls: int) -> None:
        for _ in range(calls):
            answers = [
                gateway.parts.relay.send(tenant, Call("GET", "/api/conversations"))
                for _ in range(8)
            ]
            assert {answer.status for answer in await asyncio.gather(*answers)} == {200}

    await relay(20)
    gc.collect()
    tracemalloc.start()
    try:
        before, open_before = tracemalloc.get_traced_memory()[0], len(os.listdir("/proc/self/fd"))
        await relay(100)
        agent.requests.clear()  # the stand-in keeps what it was asked
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 128 * 1024, f"800 calls left {grown} bytes"
    pool = gateway.parts.upstreams.of(instance).pool
    assert (pool.in_use, pool.resting <= 8) == (0, True)
    assert abs(len(os.listdir("/proc/self/fd")) - open_before) <= 16
    assert (await ada.api("GET", "/api/conversations")).status == 200


def _length(head: bytes) -> int:
    """The Content-Length that a request's head names."""
    [value] = re.findall(rb"(?i)content-length: (\d+)", head)
    return int(value)
