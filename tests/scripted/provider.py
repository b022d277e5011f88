"""The scripted provider as a server: a small HTTP/1.1 whose every byte is decided here.

A framework would round off the corners that the tests are about (a cut in mid-character, a stream
that breaks), so requests are read and answers written by hand.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from infra.kit import unix
from tests import tally
from tests.scripted import (
    anthropic_wire,
    embeddings,
    gemini_wire,
    invariants,
    openai_wire,
    responses_wire,
)
from tests.scripted.connection import Broken, Connection, Left
from tests.scripted.openai_wire import Piece
from tests.scripted.reply import Delay, Gate, Reply, Usage
from tests.scripted.request import Request
from tests.scripted.script import Script

_WIRES: dict[str, Any] = {
    "openai": openai_wire,
    "anthropic": anthropic_wire,
    "responses": responses_wire,
    "gemini": gemini_wire,
}
_WRITTEN_OUT = ("embeddings", "plain")


class ScriptedProvider(Script):
    """A script behind an address. `url` has no path; `base_url` ends in `/v1`."""

    def __init__(self, models: tuple[str, ...] = ("scripted-model",)) -> None:
        super().__init__()
        self.models = models
        self.requests: list[Request] = []
        self.broken: list[str] = []
        self.canaries: tuple[str, ...] = ()
        self.checks_invariants = True
        self.url = ""

    @property
    def base_url(self) -> str:
        """What a client library wants as its base URL."""
        return f"{self.url}/v1"

    @property
    def model_requests(self) -> list[Request]:
        """Requests that asked a model for words."""
        return [r for r in self.requests if r.wire in _WIRES]

    def problems(self) -> list[str]:
        """Everything that went against the script; empty is what a test wants."""
        return [
            *(f"unexpected request {r}" for r in self.unexpected),
            *(f"step never taken: {s}" for s in self.remaining()),
            *self.broken,
        ]

    def verify(self) -> None:
        """Fails the test if anything went against the script."""
        found = self.problems()
        assert not found, "the scripted provider:\n  " + "\n  ".join(found)

    async def serve_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answers the requests of one connection until it closes."""
        connection = Connection(reader, writer)
        try:
            while (head := await connection.request()) is not None:
                method, path, headers, body = head
                named = {k.lower(): v for k, v in headers}
                number = len(self.requests) + 1
                now_ms = time.time_ns() // 1_000_000
                request = Request(number, method, path, named, headers, body, now_ms)
                self.requests.append(request)
                await self._answer(connection, request)
        except (Left, ConnectionError):
            pass
        finally:
            connection.close()

    async def _answer(self, connection: Connection, request: Request) -> None:
        wire = _WIRES.get(request.wire)
        if request.wire == "models":
            await _json(connection, request, 200, embeddings.models_page(self.models))
        elif wire is None and request.wire not in _WRITTEN_OUT:
            self.unexpected.append(request)
            await _json(connection, request, 404, openai_wire.failure(404, "no such path", None))
        elif request.wire == "embeddings" and not self._has_embedding_step():
            await _json(connection, request, 200, embeddings.answer(request))
        else:
            if wire is not None and self.checks_invariants:
                found = invariants.check(request, secrets=self.canaries)
                self.broken += [f"request {request}: {problem}" for problem in found]
            await self._follow(connection, request, wire or openai_wire)

    def _has_embedding_step(self) -> bool:
        return any("on embeddings" in str(step) for step in self._next())

    async def _follow(self, connection: Connection, request: Request, wire: Any) -> None:
        reply = self.take(request)
        if reply is None:
            message = "the scripted provider expects no such request"
            await _json(connection, request, 400, wire.failure(400, message, None))
            return
        try:
            await _reply(connection, request, reply, wire)
        except Broken:
            request.outcome = "dropped"
            raise
        except (Left, ConnectionError):
            request.outcome = "left"
            raise


async def _reply(connection: Connection, request: Request, reply: Reply, wire: Any) -> None:
    limit = reply.overflow_tokens
    if limit is not None and request.input_words > limit:
        await _json(connection, request, 400, wire.overflow(limit))
        return
    if reply.recorded is not None:
        tally.count("streams")
        await connection.head(200, reply.headers, stream=True)
        pieces = _cut(iter([reply.recorded]), reply)
        await _send(connection, request, pieces, reply.drop_after_bytes)
        await connection.end()
        request.outcome = "complete"
        return
    if reply.status != 200 or reply.body is not None:
        failure = wire.failure(
            reply.status, reply.extra.get("message", ""), reply.extra.get("kind")
        )
        body = failure if reply.body is None else reply.body
        await _json(connection, request, reply.status, body, reply.headers)
        return
    used = reply.usage or Usage(request.input_words, _spoken_words(reply))
    if request.streams:
        tally.count("streams")
        headers = reply.headers
        if request.wire == "gemini" and "alt=sse" not in request.path:
            headers = (*headers, ("content-type", "application/json"))
        await connection.head(200, headers, stream=True)
        pieces = _manners(wire.stream(reply, request, used), reply)
    else:
        body = json.dumps(wire.whole(reply, request, used), ensure_ascii=False).encode()
        await _holds(connection, reply)
        await connection.head(200, reply.headers, length=len(body))
        pieces = _cut(iter([body]), reply)
    await _send(connection, request, pieces, reply.drop_after_bytes)
    await connection.end()
    request.outcome = "complete"


async def _send(
    connection: Connection, request: Request, pieces: Iterator[Piece], limit: int | None
) -> None:
    for piece in pieces:
        if isinstance(piece, Gate):
            await connection.unless_left(piece.pass_through())
        elif isinstance(piece, Delay):
            await connection.unless_left(asyncio.sleep(piece.seconds))
        else:
            room = len(piece) if limit is None else limit - request.sent_bytes
            await connection.body(piece[:room])
            request.sent.append(piece[:room])
            request.sent_bytes += len(piece[:room])
            if room < len(piece):
                connection.abort()


async def _holds(connection: Connection, reply: Reply) -> None:
    """The gates and delays of an answer that does not stream: all before its first byte."""
    for part in reply.parts:
        if isinstance(part, Gate):
            await connection.unless_left(part.pass_through())
        elif isinstance(part, Delay):
            await connection.unless_left(asyncio.sleep(part.seconds))


def _manners(pieces: Iterator[Piece], reply: Reply) -> Iterator[Piece]:
    def shaped() -> Iterator[Piece]:
        for piece in pieces:
            if isinstance(piece, bytes):
                if reply.comments:
                    yield b": SCRIPTED PROCESSING\n\n".replace(b"\n", reply.line_end.encode())
                yield piece.replace(b"\n", reply.line_end.encode())
            else:
                yield piece

    return _cut(shaped(), reply)


def _cut(pieces: Iterator[Piece], reply: Reply) -> Iterator[Piece]:
    for piece in pieces:
        if not isinstance(piece, bytes):
            yield piece
        elif reply.every_byte:
            yield from (piece[i : i + 1] for i in range(len(piece)))
        elif reply.cut_at is not None:
            yield piece[: reply.cut_at]
            yield piece[reply.cut_at :]
        elif reply.rune_cuts:
            start = 0
            for at, byte in enumerate(piece):
                if byte >= 0xC0:  # the first byte of a character of several
                    yield piece[start : at + 1]
                    start = at + 1
            yield piece[start:]
        else:
            yield piece


def _spoken_words(reply: Reply) -> int:
    called = " ".join(openai_wire.arguments(call) + " " + call.name for call in reply.tool_calls)
    return len(reply.text.split()) + len(called.split())


async def _json(
    connection: Connection,
    request: Request,
    status: int,
    body: bytes | dict[str, Any],
    headers: tuple[tuple[str, str], ...] = (),
) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    await connection.head(status, headers, length=len(raw))
    await connection.body(raw)
    await connection.end()
    request.sent, request.sent_bytes = [raw], len(raw)
    request.outcome = "complete"


@asynccontextmanager
async def serve(
    provider: ScriptedProvider, *, port: int = 0, socket_path: Path | None = None
) -> AsyncIterator[ScriptedProvider]:
    """Serves `provider` on a loopback port or a unix socket while the block runs; sets its `url`."""
    if socket_path is not None:
        listener = unix.bind(socket_path)
        server = await asyncio.start_unix_server(provider.serve_connection, sock=listener)
        provider.url = f"unix://{socket_path}"
    else:
        server = await asyncio.start_server(provider.serve_connection, "127.0.0.1", port)
        provider.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    tasks_before = asyncio.all_tasks()
    try:
        yield provider
    finally:
        server.close()
        for task in asyncio.all_tasks() - tasks_before:
            if getattr(task.get_coro(), "__name__", "") == "serve_connection":
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await server.wait_closed()
