"""Pools of connections to providers."""

import asyncio
from contextlib import AsyncExitStack

from infra.kit.relay import RelayRequest
from infra.kit.service import raise_file_limit
from metering_proxy.providers.connections import Connection
from metering_proxy.providers.dialling import Dialling
from metering_proxy.providers.kinds import kinds
from metering_proxy.providers.upstreams import Upstreams

_STREAMS = 1_000
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


async def test_a_thousand_streams_of_one_provider_are_open_at_once() -> None:
    raise_file_limit()
    over = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(_HEAD)
        await over.wait()
        writer.close()

    server = await asyncio.start_server(endless, "127.0.0.1", 0, backlog=_STREAMS)
    port = server.sockets[0].getsockname()[1]
    async with AsyncExitStack() as stack:
        stack.callback(server.close)
        upstreams = Upstreams(Dialling())
        stack.push_async_callback(upstreams.close)
        stack.callback(over.set)
        url = f"http://127.0.0.1:{port}"
        provider = Connection("p", kinds()["openai_compatible"], "p", url, ())
        for _ in range(_STREAMS):
            upstream = await stack.enter_async_context(upstreams.use(provider))
            answer = await upstream.open(RelayRequest("POST", "/", (), b""))
            stack.push_async_callback(answer.close)
            assert answer.status == 200
