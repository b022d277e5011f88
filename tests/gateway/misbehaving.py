"""Agents that answer as no agent should: what a tenant can make its own container say.

Each is a listener on a real socket that reads a request and does one bad thing.
"""

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from infra.kit import unix

Act = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def says(raw: bytes) -> Act:
    """Sends these bytes and closes."""

    async def act(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()

    return act


def _with(head: str, body: bytes) -> Act:
    return says(f"HTTP/1.1 {head}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)


async def _nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


async def _headers_without_end(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while not writer.is_closing():
        writer.write(b"x-a: " + b"b" * 1000 + b"\r\n")
        await writer.drain()


async def _body_without_end(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
    writer.write(head + b'"')
    while not writer.is_closing():
        writer.write(b"a" * 65536)
        await writer.drain()


async def _continues_without_end(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while not writer.is_closing():
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
        await writer.drain()
        await asyncio.sleep(0.01)


async def _drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n"
    )
    while not writer.is_closing():
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.05)


JSON = "200 OK\r\ncontent-type: application/json"
# What it does, and which statuses the browser may see.
MISBEHAVIOURS: dict[str, tuple[Act, tuple[int, ...]]] = {
    "a page": (_with("200 OK\r\ncontent-type: text/html", b"<script>alert(1)</script>"), (502,)),
    "a page called json twice": (
        _with("200 OK\r\ncontent-type: application/json\r\ncontent-type: text/html", b"{}"),
        (502,),
    ),
    "a picture": (_with("200 OK\r\ncontent-type: image/svg+xml", b"<svg onload=x>"), (502,)),
    "no type": (_with("200 OK", b"{}"), (502,)),
    "a page as an error": (_with("404 No\r\ncontent-type: text/html", b"<h1>"), (502,)),
    "json by name only": (_with(JSON, b"<html>"), (502,)),
    "half of json": (_with(JSON, b'{"a": '), (502,)),
    "an event stream": (_with("200 OK\r\ncontent-type: text/event-stream", b"data: x\n\n"), (502,)),
    "a redirect": (_with("302 Go\r\nlocation: https://evil.example/", b""), (502,)),
    "a permanent redirect": (_with(f"308 {JSON[4:]}\r\nlocation: //evil.example", b"{}"), (502,)),
    "not modified": (says(b"HTTP/1.1 304 Not Modified\r\n\r\n"), (502,)),
    "signed out": (_with("401 No\r\ncontent-type: application/json", b"{}"), (502,)),
    "proxy sign-in": (_with("407 No\r\ncontent-type: application/json", b"{}"), (502,)),
    "switching protocols": (
        says(b"HTTP/1.1 101 Up\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"),
        (502, 504),
    ),
    "zipped": (
        _with(f"{JSON}\r\ncontent-encoding: gzip", gzip.compress(b"{}")),
        (502,),
    ),
    "a body with no content": (
        says(b"HTTP/1.1 204 No\r\ncontent-length: 5\r\n\r\n<b>x>"),
        (204, 502),
    ),
    "not http": (says(b"SSH-2.0-OpenSSH_9\r\n"), (502,)),
    "nothing at all": (says(b""), (502,)),
    "status of letters": (says(b"HTTP/1.1 abc OK\r\n\r\n"), (502,)),
    "status 999": (_with("999 Odd\r\ncontent-type: application/json", b"{}"), (502,)),
    "shorter than promised": (
        says(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{}"),
        (502,),
    ),
    "two lengths": (
        says(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n"
            b"content-length: 40\r\n\r\n{}"
        ),
        (502,),
    ),
    "bad chunks": (
        says(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
            b"transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n"
        ),
        (502,),
    ),
    "headers without end": (_headers_without_end, (502, 504)),
    "continues without end": (_continues_without_end, (502, 504)),
    "a body without end": (_body_without_end, (502,)),
    "a million lists": (_with(JSON, b"[" + b"[]," * 600_000 + b"[]]"), (502,)),
    "a drip": (_drip, (504,)),
    "silence": (_nothing, (504,)),
}


@asynccontextmanager
async def listening(path: Path, act: Act) -> AsyncIterator[list[bytes]]:
    """Listens at `path` while the block runs; gives the heads of the requests that came."""
    seen: list[bytes] = []
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            seen.append(await reader.readuntil(b"\r\n\r\n"))
            await act(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.close()

    path.parent.mkdir(parents=True, exist_ok=True)
    server = await asyncio.start_unix_server(serve, sock=unix.bind(path))
    try:
        yield seen
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
