"""ASGI in small: a request, an answer, a table of routes. No framework: it would cost megabytes a tenant."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import orjson

from infra.kit import ids
from infra.kit.errors import AlcoveError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

BODY_MAX_BYTES = 512 * 1024


class ClientGone(Exception):
    """The client left before its request was read."""


@dataclass(slots=True)
class Request:
    """One request. `path_values` are the parts of the path that the route names."""

    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    receive: Receive
    request_id: str
    path_values: dict[str, str] = field(default_factory=dict)

    async def json(self) -> dict[str, Any]:
        """The body, a JSON object of at most 512 KiB. Raises `invalid`, `too_large` and ClientGone."""
        body = bytearray()
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            body += message.get("body", b"")
            if len(body) > BODY_MAX_BYTES:
                raise AlcoveError("too_large", f"A request may have {BODY_MAX_BYTES} bytes.")
            if not message.get("more_body"):
                break
        try:
            found = orjson.loads(bytes(body) or b"{}")
        except orjson.JSONDecodeError:
            raise AlcoveError("invalid", "The request is not valid JSON.") from None
        if not isinstance(found, dict):
            raise AlcoveError("invalid", "The request must be a JSON object.")
        return found

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number of the query, kept within its limits. Raises `invalid` for anything else."""
        text = self.query.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise AlcoveError("invalid", f"{name} must be a whole number.")
        return max(least, min(int(text), most))


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: JSON, nothing at all, or a stream of bytes."""

    status: int = 200
    body: Any = None
    stream: AsyncGenerator[bytes, None] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Request], Awaitable[Response]]


class Routes:
    """Which handler answers which method and path. A path's part in braces is a value."""

    def __init__(self, table: Mapping[tuple[str, str], Handler]) -> None:
        self._table = [
            (method, path.split("/"), handler) for (method, path), handler in table.items()
        ]

    def find(self, request: Request) -> Handler:
        """The handler, with the path's values put into the request. Raises `not_found`."""
        parts = request.path.split("/")
        for method, pattern, handler in self._table:
            if method != request.method or len(pattern) != len(parts):
                continue
            if all(p == q or p[:1] == "{" for p, q in zip(pattern, parts, strict=True)):
                request.path_values = {
                    p[1:-1]: q for p, q in zip(pattern, parts, strict=True) if p[:1] == "{"
                }
                return handler
        raise AlcoveError("not_found", "There is nothing here.")


def request_of(scope: Scope, receive: Receive) -> Request:
    """The request in an ASGI scope; one without a request id gets one."""
    headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
    given = headers.get("x-request-id", "")
    return Request(
        method=scope["method"],
        path=scope["path"],
        query=dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)),
        headers=headers,
        receive=receive,
        request_id=given
        if given.isascii() and 0 < len(given) <= 64 and given.isprintable()
        else ids.ulid(),
    )


async def respond(receive: Receive, send: Send, response: Response) -> None:
    """Sends an answer to its end, or to where the client leaves."""
    headers = {"cache-control": "no-store", **response.headers}
    if response.stream is None:
        body = b"" if response.body is None else orjson.dumps(response.body)
        headers |= {"content-length": str(len(body))}
        if body:
            headers |= {"content-type": "application/json"}
        await send(_start(response.status, headers))
        await send({"type": "http.response.body", "body": body})
        return
    await send(_start(response.status, headers))
    sending = asyncio.create_task(_send_all(send, response.stream))
    leaving = asyncio.create_task(_left(receive))
    await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
    for task in (sending, leaving):
        task.cancel()
    await asyncio.gather(sending, leaving, return_exceptions=True)
    if not sending.cancelled():
        sending.result()


async def _send_all(send: Send, stream: AsyncGenerator[bytes, None]) -> None:
    async with contextlib.aclosing(stream) as pieces:
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _left(receive: Receive) -> None:
    """Returns when the client is gone: the server drops what is sent to it without a word."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _start(status: int, headers: Mapping[str, str]) -> MutableMapping[str, Any]:
    encoded = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers.items()]
    return {"type": "http.response.start", "status": status, "headers": encoded}
