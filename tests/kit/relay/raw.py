"""An upstream whose bytes the test writes itself."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from infra.kit import unix
from infra.kit.relay import ProtocolUpstream, RelayRequest, Timeouts, Upstream
from tests.kit.relay.over_aiohttp import HttpUpstream
from tests.waiting import until

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter, bytes], Awaitable[None]]
Kind = type[HttpUpstream] | type[ProtocolUpstream]
GET = RelayRequest("GET", "/x", [("host", "h")])
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


class Raw:
    """Answers each head (and body of a stated length) by `handler`; counts its connections."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.connections = 0
        self.closed = 0
        self.gone = 0
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                _, _, length = head.lower().partition(b"content-length: ")
                body = await reader.readexactly(int(length.split(b"\r\n")[0] or 0))
                self.bodies.append(body)
                await self._handler(reader, writer, head)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.closed += 1
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            self.gone += 1


@asynccontextmanager
async def listening(path: Path, handler: Handler) -> AsyncIterator[Raw]:
    """A raw server on a unix socket at `path`; every connection to it must end with the block."""
    raw = Raw(handler)
    server = await asyncio.start_unix_server(raw, sock=unix.bind(path))
    yield raw
    server.close()
    await until(lambda: raw.gone == raw.connections, what="the end of every connection")
    await server.wait_closed()


@asynccontextmanager
async def raw_upstream(
    kind: Kind, path: Path, handler: Handler, timeouts: Timeouts | None = None
) -> AsyncIterator[tuple[Raw, Upstream]]:
    """A raw server on a unix socket in `path`, and the relay's end to it."""
    async with (
        listening(path / "up.sock", handler) as raw,
        kind(f"unix://{path}/up.sock", timeouts=timeouts) as upstream,
    ):
        yield raw, upstream


def answers(raw: bytes, *, then_close: bool = False) -> Handler:
    """A handler that writes these bytes, whatever was asked."""

    async def handler(_: object, writer: asyncio.StreamWriter, __: bytes) -> None:
        writer.write(raw)
        if then_close:
            await writer.drain()
            raise ConnectionError

    return handler


async def body_of(upstream: Upstream, request: RelayRequest = GET) -> bytes:
    """The whole body of the answer."""
    response = await upstream.open(request)
    try:
        return b"".join([chunk async for chunk in response.chunks()])
    finally:
        await response.close()
