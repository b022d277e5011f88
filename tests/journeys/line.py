"""The line between a browser and the gateway, which a test cuts and mends."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Line:
    """Passes bytes both ways until it is cut; then every connection breaks, and new ones too."""

    def __init__(self, port: int) -> None:
        self._port, self._cut = port, False
        self._open: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """From now on nobody gets through."""
        self._cut = True
        for writer in self._open:
            writer.transport.abort()

    def mend(self) -> None:
        """From now on everybody does again."""
        self._cut = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        ends = {writer}
        self._open |= ends
        with contextlib.suppress(OSError):
            if not self._cut:
                there, to = await asyncio.open_connection("127.0.0.1", self._port)
                ends.add(to)
                self._open.add(to)
                await asyncio.gather(_pass(reader, to), _pass(there, writer))
        self._open -= ends
        for end in ends:
            end.transport.abort()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.transport.abort() if writer.transport.is_closing() else writer.close()


@asynccontextmanager
async def line(listen: int, target: int) -> AsyncIterator[Line]:
    """A line from one port of the loopback to another, while the block runs."""
    made = Line(target)
    server = await asyncio.start_server(made.serve, "127.0.0.1", listen)
    try:
        yield made
    finally:
        server.close()
        made.cut()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                await server.wait_closed()
