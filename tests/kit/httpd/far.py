"""A listener that offers tunnels, and the server behind them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from infra.kit import httpd, unix
from infra.kit.duplex import Direction, Ending, Streams, join
from infra.kit.errors import AlcoveError
from tests.kit.httpd.wire import Listening, echo
from tests.waiting import until


class Far:
    """A server behind the tunnel, and what the handler of CONNECT made of each one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.peers: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.endings: list[Ending | BaseException] = []
        self.passed = {"up": 0, "down": 0}
        self.budget = 1 << 40
        self.idle_s = 5.0
        self.gate: asyncio.Event | None = None

    async def connect(self, request: httpd.Request) -> None:
        """Answers a CONNECT: the handler under test."""
        request.trust()
        if request.target != "far.example:443":
            raise AlcoveError("forbidden", "not there", reason="elsewhere")
        if self.gate is not None:
            await self.gate.wait()
        reader, writer = await unix.open_stream(self.path)
        try:
            tunnel = request.tunnel([("x-tunnel", "yes")])
            self.endings.append(
                await join(tunnel, Streams(reader, writer), idle_s=self.idle_s, passing=self._pass)
            )
        except BaseException as error:
            self.endings.append(error)
            raise

    async def _pass(self, direction: Direction, size: int) -> None:
        self.passed[direction] += size
        if sum(self.passed.values()) > self.budget:
            raise AlcoveError("rate_limited", "enough", reason="budget")

    async def peer(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The far end of the newest tunnel."""
        await until(lambda: self.peers, what="a connection to the far side")
        return self.peers[-1]


@asynccontextmanager
async def tunnelling(
    directory: Path, limits: httpd.Limits | None = None
) -> AsyncIterator[tuple[Listening, Far]]:
    """A listener that offers tunnels to one far server, while the block runs."""
    far = Far(directory / "far.sock")

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far.peers.append((reader, writer))

    server = await asyncio.start_unix_server(accepted, sock=unix.bind(far.path))
    path = directory / "d.sock"
    listener = await httpd.listen(unix.bind(path), echo, connect=far.connect, limits=limits)
    try:
        yield Listening(listener, path), far
    finally:
        await listener.close(grace_s=0.2)
        for _, writer in far.peers:
            writer.transport.abort()
        server.close()
        assert listener.connections == 0
