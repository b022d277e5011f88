"""One HTTP/1.1 connection of the scripted provider, byte by byte."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Coroutine
from http import HTTPStatus
from typing import Any

Head = tuple[str, str, list[tuple[str, str]], bytes]


class Left(Exception):
    """The client went away."""


class Broken(Left):
    """The connection was broken from this side, on purpose."""


class Connection:
    """Reads requests, writes answers, and notices a client that leaves while it is not reading."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._ahead = b""  # a byte of the next request, seen while watching for the end
        self._chunked = False

    async def request(self) -> Head | None:
        """The next request, or None where the client is done."""
        try:
            raw = self._ahead + await self._reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        self._ahead = b""
        first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = [(k, v.strip()) for k, _, v in (line.partition(":") for line in lines)]
        named = {k.lower(): v for k, v in headers}
        if named.get("transfer-encoding", "").lower() == "chunked":
            return method, path, headers, await self._chunks()
        length = int(named.get("content-length", "0"))
        return method, path, headers, await self._reader.readexactly(length)

    async def _chunks(self) -> bytes:
        parts = []
        while size := int((await self._reader.readline()).split(b";")[0], 16):
            parts.append(await self._reader.readexactly(size))
            await self._reader.readline()
        await self._reader.readuntil(b"\r\n")
        return b"".join(parts)

    async def head(
        self,
        status: int,
        headers: tuple[tuple[str, str], ...] = (),
        *,
        length: int | None = None,
        stream: bool = False,
    ) -> None:
        """The status line and headers: of JSON with its length, or of an event stream in chunks."""
        self._chunked = stream
        own = (
            [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]
            if stream
            else [("content-type", "application/json"), ("content-length", str(length))]
        )
        given = {k.lower() for k, _ in headers}
        lines = [(k, v) for k, v in own if k not in given] + list(headers)
        phrase = next((s.phrase for s in HTTPStatus if s == status), "Scripted")
        text = f"HTTP/1.1 {status} {phrase}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines)
        await self._write(text.encode("latin-1") + b"\r\n")

    async def body(self, piece: bytes) -> None:
        """A piece of the body, sent at once."""
        if not piece:
            return
        await self._write(b"%x\r\n%s\r\n" % (len(piece), piece) if self._chunked else piece)

    async def end(self) -> None:
        """The end of the body."""
        if self._chunked:
            await self._write(b"0\r\n\r\n")

    async def unless_left(self, waiting: Coroutine[Any, Any, object]) -> None:
        """Waits; raises Left as soon as the client goes away."""
        wait = asyncio.ensure_future(waiting)
        watch = asyncio.ensure_future(self._reader.read(1))
        try:
            await asyncio.wait((wait, watch), return_when=asyncio.FIRST_COMPLETED)
            if watch.done() and not wait.done():
                seen = watch.result()
                if not seen:
                    raise Left
                self._ahead += seen
                await wait
            elif watch.done():
                self._ahead += watch.result()
        finally:
            for task in (wait, watch):
                if not task.done():
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await task

    def abort(self) -> None:
        """Breaks the connection: the client sees a reset. Raises Broken."""
        sock = self._writer.get_extra_info("socket")
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()
        raise Broken

    def close(self) -> None:
        """Ends it."""
        self._writer.close()

    async def _write(self, raw: bytes) -> None:
        if self._writer.is_closing():
            raise Left
        self._writer.write(raw)
        await self._writer.drain()
        await asyncio.sleep(0)  # let a reset that has arrived be seen
