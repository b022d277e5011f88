"""Both ends of a test: a listener on a unix socket, and a client that writes its own bytes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from infra.kit import httpd, unix

GET = b"GET /x HTTP/1.1\r\nhost: h\r\n\r\n"


@dataclass
class Reply:
    """An answer as it was read."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Client:
    """One connection to the listener."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    interim: list[int] = field(default_factory=list)

    def send(self, data: bytes) -> None:
        """Writes bytes as they are."""
        self.writer.write(data)

    async def reply(self, *, bodiless: bool = False) -> Reply:
        """The next answer; 1xx are kept aside. Raises IncompleteReadError where it is cut."""
        async with asyncio.timeout(10):
            while True:
                reply = await self._head()
                if reply.status >= 200:
                    break
                self.interim.append(reply.status)
            if not bodiless and reply.status not in (204, 304):
                reply.body = await self._body(reply.headers)
            return reply

    async def ended(self) -> bool:
        """Whether the server closes, having sent nothing more."""
        async with asyncio.timeout(10):
            try:
                return await self.reader.read(1) == b""
            except ConnectionError:
                return True

    def close(self) -> None:
        """Leaves."""
        self.writer.close()

    async def _head(self) -> Reply:
        first, *lines = (
            (await self.reader.readuntil(b"\r\n\r\n"))[:-4].decode("latin-1").split("\r\n")
        )
        headers = {}
        for line in lines:
            name, _, value = line.partition(": ")
            assert name.lower() not in headers, f"{name} twice"
            headers[name.lower()] = value
        return Reply(int(first.split(" ")[1]), headers, b"")

    async def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(await self.reader.readuntil(b"\r\n"), 16):
                body += await self.reader.readexactly(size)
                assert await self.reader.readexactly(2) == b"\r\n"
            assert await self.reader.readexactly(2) == b"\r\n"
            return body
        if "content-length" in headers:
            return await self.reader.readexactly(int(headers["content-length"]))
        return await self.reader.read()


@dataclass
class Listening:
    """A listener under test."""

    listener: httpd.Listener
    path: Path

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """A new connection."""
        reader, writer = await unix.open_stream(self.path)
        try:
            yield Client(reader, writer)
        finally:
            writer.close()

    async def ask(self, data: bytes = GET) -> Reply:
        """The answer to these bytes on a connection of their own."""
        async with self.client() as client:
            client.send(data)
            return await client.reply()


@asynccontextmanager
async def listening(
    directory: Path,
    handler: httpd.Handler,
    limits: httpd.Limits | None = None,
    capacity: httpd.Capacity | None = None,
) -> AsyncIterator[Listening]:
    """A listener on a socket in `directory` while the block runs."""
    path = directory / "d.sock"
    listener = await httpd.listen(unix.bind(path), handler, limits=limits, capacity=capacity)
    try:
        yield Listening(listener, path)
    finally:
        await listener.close(grace_s=0.2)
        assert listener.connections == 0
        assert listener.capacity.connections == 0
        assert listener.capacity.body_bytes == 0


async def echo(request: httpd.Request) -> None:
    """Answers with what it was sent."""
    body = await request.body()
    await request.respond(200, [("x-target", request.target), ("x-method", request.method)], body)
