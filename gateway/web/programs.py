"""The way of people's programs through the public port: `/v1/…` and `/v1beta/…`, to the meter's door for them.

Nothing of the pages' world holds here: no cookie is read or sent on, so no page of anybody's can call in a
person's name; what opens the door is a key in a header, and the meter says whose it is. A body is read only once
the meter has known the key, so that strangers fill no memory. Answers are the meter's, byte for byte.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.limits import Limits
from gateway.web.guard import RequestGuard
from gateway.web.refusal import send_refusal
from infra.kit import log, tracing
from infra.kit.errors import AlcoveError
from infra.kit.relay import Headers, RelayRequest, RelayResponse, Upstream, end_to_end

_OURS = re.compile(r"/(?:v1|v1beta)/")
# What a library asks for whose base URL lacks its /v1.
_NEARLY = re.compile(r"/(?:chat/completions|embeddings|messages|models|responses)")
_KEYS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
_PASSED = (
    *_KEYS,
    "content-type",
    "accept",
    "accept-encoding",
    "content-encoding",
    "user-agent",
    "anthropic-version",
    "anthropic-beta",
    "openai-beta",
)
_METHODS = ("GET", "POST")
_STREAM = b"text/event-stream"


class Programs:
    """Takes programs' calls out of what goes to the pages."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        upstream: Upstream | None,
        hosts: Iterable[str],
        limits: Limits,
        crowded: Callable[[], bool],
    ) -> None:
        self._app, self._limits = app, limits
        self._upstream = upstream
        self._guarded = RequestGuard(
            self._answer,
            hosts=hosts,
            limits=replace(limits, body_bytes=limits.program_body_bytes),
            crowded=crowded,
        )
        self._calls = self._body_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._upstream and _OURS.match(scope["path"]):
            await self._guarded(scope, receive, send)
        elif scope["type"] == "http" and self._upstream and _lacks_its_beginning(scope):
            told = "programs' paths begin with /v1: let the base URL end in it"
            await send_refusal(scope, send, AlcoveError("not_found", told, reason="base_url"))
        else:
            await self._app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            if self._calls >= self._limits.program_calls:
                raise _busy()
            self._calls += 1
            try:
                await self._relay(scope, receive, noted)
            finally:
                self._calls -= 1
        except AlcoveError as error:
            if started:
                raise  # the server cuts the answer, so that nobody takes it for a whole one
            await send_refusal(scope, send, error)

    async def _relay(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._upstream is not None
        given = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in scope["headers"]]
        headers = _passed(given)
        if scope["method"] not in _METHODS:
            raise AlcoveError("not_found", "this path is not called that way", reason="method")
        if not any(name in _KEYS for name, _ in headers):
            told = "a key is needed, as Authorization: Bearer, x-api-key, x-goog-api-key or api-key"
            raise AlcoveError("unauthorized", told, reason="no_key")
        target = _target(scope)
        if scope["method"] == "POST" and not await self._knows(headers):
            # Without its body: what the meter refuses here, it refuses in the caller's own wire shape.
            await self._pass(RelayRequest("POST", target, headers), receive, send)
            return
        held = 0
        try:
            body = bytearray()
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return
                body += message.get("body", b"")
                self._body_bytes += len(body) - held
                held = len(body)
                if self._body_bytes > self._limits.program_bytes_in_flight:
                    raise _busy()
                if not message.get("more_body"):
                    break
            request = RelayRequest(scope["method"], target, headers, bytes(body), replayable=False)
            await self._pass(request, receive, send)
        finally:
            self._body_bytes -= held

    async def _knows(self, headers: Headers) -> bool:
        """Whether the meter lets this key in."""
        assert self._upstream is not None
        shown = [(name, value) for name, value in headers if name in _KEYS]
        response = await self._upstream.open(RelayRequest("GET", "/v1/models", shown))
        try:
            async for _ in response.chunks():
                pass
        finally:
            await response.close()
        return response.status != 401

    async def _pass(self, request: RelayRequest, receive: Receive, send: Send) -> None:
        """Sends it and hands back the answer; a caller who leaves ends both, as the meter must hear."""
        assert self._upstream is not None
        answering = asyncio.ensure_future(self._answered(self._upstream.open(request), send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                answering.result()
        finally:
            for task in (answering, leaving):
                task.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)

    async def _answered(self, opening: Awaitable[RelayResponse], send: Send) -> None:
        response = await opening
        try:
            headers = [
                (name.lower().encode("latin-1"), value.encode("latin-1"))
                for name, value in end_to_end(response.headers)
                if name.lower() != "date"  # our server says when it answered
            ]
            if any(k == b"content-type" and v.startswith(_STREAM) for k, v in headers):
                headers.append((b"x-accel-buffering", b"no"))  # a proxy in front hands on each word
            await send(
                {"type": "http.response.start", "status": response.status, "headers": headers}
            )
            async for chunk in response.chunks():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            await response.close()


def _lacks_its_beginning(scope: Scope) -> bool:
    shows_a_key = any(name.decode("latin-1") in _KEYS for name, _ in scope["headers"])
    return shows_a_key and _NEARLY.fullmatch(scope["path"]) is not None


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _passed(given: Headers) -> list[tuple[str, str]]:
    """The headers that the meter is shown: by list, so that no cookie and no word of proxies is among them."""
    found = [(name, value) for name, value in end_to_end(given) if name in _PASSED]
    request_id = log.context().get("request_id")
    if request_id:
        found.append(("x-request-id", str(request_id)))
    return [*found, *tracing.headers().items()]


def _target(scope: Scope) -> str:
    query = scope["query_string"].decode("ascii")
    path: str = scope["raw_path"].decode("ascii")
    return f"{path}?{query}" if query else path


def _busy() -> AlcoveError:
    return AlcoveError(
        "unavailable", "too many programs call at once", reason="busy", retry_after_s=2
    )
