"""Connections of the protocol relay: how many, for how long, which again, and none forgotten."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from infra.kit.errors import AlcoveError
from infra.kit.relay import ProtocolUpstream, RelayRequest, RelayResponse, Timeouts
from tests.kit.relay.raw import GET, OK, Handler, Raw, answers, body_of, listening
from tests.waiting import until

POST = RelayRequest("POST", "/x", [("host", "h")], b"abc")
QUICK = Timeouts(connect_s=0.1, first_byte_s=5, idle_s=5)


@asynccontextmanager
async def pooled(
    path: Path,
    handler: Handler,
    *,
    limit: int = 512,
    rest_s: float = 15.0,
    timeouts: Timeouts | None = None,
) -> AsyncIterator[tuple[Raw, ProtocolUpstream]]:
    """A raw server and the relay's end to it, with a pool of these measures."""
    url = f"unix://{path}/up.sock"
    async with (
        listening(path / "up.sock", handler) as raw,
        ProtocolUpstream(url, limit=limit, rest_s=rest_s, timeouts=timeouts) as upstream,
    ):
        yield raw, upstream
        assert upstream.pool.in_use == 0


async def silent(reader: asyncio.StreamReader, _: object, __: bytes) -> None:
    """Says nothing until the other side leaves."""
    if not await reader.read(1):
        raise ConnectionError


async def read(response: RelayResponse) -> bytes:
    """The whole body."""
    try:
        return b"".join([chunk async for chunk in response.chunks()])
    finally:
        await response.close()


async def test_connection_used_last_is_taken_first(tmp_path: Path) -> None:
    async with pooled(tmp_path, answers(OK)) as (raw, upstream):
        first, second = await upstream.open(GET), await upstream.open(GET)
        await read(second)
        await read(first)
        assert (raw.connections, upstream.pool.resting) == (2, 2)
        for _ in range(10):
            await body_of(upstream)
        assert (raw.connections, upstream.pool.resting) == (2, 2)


async def test_connection_is_closed_when_it_rested_too_long(tmp_path: Path) -> None:
    async with pooled(tmp_path, answers(OK), rest_s=0.05) as (raw, upstream):
        await body_of(upstream)
        await until(lambda: raw.closed == 1)
        await until(lambda: upstream.pool.resting == 0)
        await body_of(upstream)
        assert raw.connections == 2


async def test_call_waits_its_turn_when_all_connections_are_in_use(tmp_path: Path) -> None:
    async with pooled(tmp_path, answers(OK), limit=2) as (raw, upstream):
        bodies = await asyncio.gather(*(body_of(upstream) for _ in range(50)))
        assert bodies == [b"hello"] * 50
        assert raw.connections <= 2


async def test_call_is_unavailable_when_all_connections_stay_in_use(tmp_path: Path) -> None:
    async with pooled(tmp_path, answers(OK), limit=1, timeouts=QUICK) as (raw, upstream):
        held = await upstream.open(GET)
        with pytest.raises(AlcoveError) as caught:
            await upstream.open(GET)
        assert (caught.value.code, caught.value.reason) == ("unavailable", "saturated")
        assert len(raw.heads) == 1
        await held.close()
        assert await body_of(upstream) == b"hello"


async def test_turn_is_passed_on_when_who_waits_is_cancelled(tmp_path: Path) -> None:
    async with pooled(tmp_path, answers(OK), limit=1) as (_, upstream):
        held = await upstream.open(GET)
        waiting = [asyncio.create_task(body_of(upstream)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await held.close()
        assert await asyncio.gather(*waiting[1:]) == [b"hello"] * 2


def closing_after(answered: int) -> Handler:
    """Answers so many requests a connection, then closes it instead of answering."""
    seen: dict[asyncio.StreamWriter, int] = {}

    async def handler(_: object, writer: asyncio.StreamWriter, __: bytes) -> None:
        seen[writer] = seen.get(writer, 0) + 1
        if seen[writer] > answered:
            raise ConnectionError
        writer.write(OK)

    return handler


@pytest.mark.parametrize(
    ("request_", "again"),
    [
        (GET, True),
        (RelayRequest("HEAD", "/", []), True),
        (RelayRequest("POST", "/", [], b"abc", replayable=True), True),
        (POST, False),
        (RelayRequest("PUT", "/", []), False),
        (RelayRequest("GET", "/", [], replayable=False), False),
    ],
)
async def test_request_is_sent_again_when_a_kept_connection_was_dead_and_it_may(
    request_: RelayRequest, again: bool, tmp_path: Path
) -> None:
    async with pooled(tmp_path, closing_after(1)) as (raw, upstream):
        await body_of(upstream)
        if again:
            await body_of(upstream, request_)
            assert (raw.connections, len(raw.heads)) == (2, 3)
        else:
            with pytest.raises(AlcoveError) as caught:
                await upstream.open(request_)
            assert (caught.value.code, caught.value.reason) == ("bad_gateway", "broken")
            assert (raw.connections, len(raw.heads)) == (1, 2)


async def test_request_is_sent_once_when_a_new_connection_breaks(tmp_path: Path) -> None:
    async with pooled(tmp_path, closing_after(0)) as (raw, upstream):
        with pytest.raises(AlcoveError):
            await upstream.open(GET)
        assert (raw.connections, len(raw.heads)) == (1, 1)


async def test_request_is_sent_once_when_a_part_of_an_answer_came(tmp_path: Path) -> None:
    async def handler(_: object, writer: asyncio.StreamWriter, __: bytes) -> None:
        if len(raw.heads) > 1:
            writer.write(b"HTTP/1.1 2")
            await writer.drain()
            raise ConnectionError
        writer.write(OK)

    async with pooled(tmp_path, handler) as (raw, upstream):
        await body_of(upstream)
        with pytest.raises(AlcoveError):
            await upstream.open(GET)
        assert len(raw.heads) == 2


async def test_closed_connection_is_passed_over_when_it_closed_while_resting(
    tmp_path: Path,
) -> None:
    writers: list[asyncio.StreamWriter] = []

    async def handler(_: object, writer: asyncio.StreamWriter, __: bytes) -> None:
        writers.append(writer)
        writer.write(OK)

    async with pooled(tmp_path, handler) as (raw, upstream):
        await body_of(upstream)
        writers[0].close()
        await until(lambda: upstream.pool.resting == 0)
        assert await body_of(upstream, POST) == b"hello"
        assert raw.connections == 2


async def test_resting_connection_is_closed_when_the_upstream_speaks_unasked(
    tmp_path: Path,
) -> None:
    writers: list[asyncio.StreamWriter] = []

    async def handler(_: object, writer: asyncio.StreamWriter, __: bytes) -> None:
        writers.append(writer)
        writer.write(OK)

    async with pooled(tmp_path, handler) as (raw, upstream):
        await body_of(upstream)
        writers[0].write(OK.replace(b"hello", b"forge"))
        await until(lambda: raw.closed == 1)
        assert await body_of(upstream) == b"hello"


async def test_upstream_sees_the_end_when_who_waits_for_a_head_is_cancelled(tmp_path: Path) -> None:
    async with pooled(tmp_path, silent) as (raw, upstream):
        waiting = asyncio.create_task(upstream.open(GET))
        await until(lambda: raw.heads)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await until(lambda: raw.closed == 1)


async def test_connection_is_not_reused_when_the_request_was_not_taken_whole(
    tmp_path: Path,
) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await writer.drain()
        accepted.append(writer)

    accepted: list[asyncio.StreamWriter] = []
    server = await asyncio.start_unix_server(handler, tmp_path / "up.sock", limit=1024)
    async with ProtocolUpstream(f"unix://{tmp_path}/up.sock") as upstream:
        for _ in range(2):
            early = RelayRequest("POST", "/", [], bytes(3_000_000))
            assert await body_of(upstream, early) == b"hello"
        assert len(accepted) == 2
    for writer in accepted:
        writer.close()
    server.close()
    await server.wait_closed()


async def test_reader_is_told_when_the_upstream_is_closed_under_it(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"
    async with pooled(tmp_path, answers(head)) as (raw, upstream):
        response = await upstream.open(GET)
        await upstream.close()
        with pytest.raises(AlcoveError) as caught:
            await read(response)
        assert caught.value.code == "bad_gateway"
        await response.close()
        with pytest.raises(AlcoveError) as caught:
            await upstream.open(GET)
        assert caught.value.code == "unavailable"
        await until(lambda: raw.closed == raw.connections)


async def test_close_changes_nothing_when_it_comes_twice(tmp_path: Path) -> None:
    async with pooled(tmp_path, answers(OK)) as (raw, upstream):
        first = await upstream.open(GET)
        await read(first)
        second = await upstream.open(GET)
        await first.close()
        assert await read(second) == b"hello"
        assert raw.connections == 1


async def test_nothing_is_left_when_calls_end_in_every_way(tmp_path: Path) -> None:
    turns = [OK, OK[:-2], b"junk\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\nuntil closed", OK + OK]

    async def handler(_: object, writer: asyncio.StreamWriter, __: bytes) -> None:
        writer.write(turns[len(raw.heads) % len(turns)])
        await writer.drain()
        if len(raw.heads) % len(turns) in (1, 3):
            raise ConnectionError

    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    async with pooled(tmp_path, handler) as (raw, upstream):
        before, tasks = descriptors(), len(asyncio.all_tasks())
        for turn in range(60):
            try:
                response = await upstream.open(GET)
                await (read(response) if turn % 2 else response.close())
            except AlcoveError:
                pass
        await upstream.close()
        await until(lambda: raw.closed == raw.connections)
        await until(lambda: descriptors() <= before)
        await until(lambda: len(asyncio.all_tasks()) <= tasks)
