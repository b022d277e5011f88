"""The request guard: what a request may look like at all. A refused one never reaches a route.

The HTTP parser refuses what is not HTTP; this refuses what is HTTP and no good: a second Host, a
foreign Host, encoded path tricks, header floods, bodies without end. `scope["path"]` is decoded and
`raw_path` is not, so both are looked at, and no route is ever reached by a path that they disagree on.
"""

import re
from collections.abc import Callable, Iterable
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.limits import Limits
from gateway.web.refusal import send_refusal
from infra.kit.errors import AlcoveError

METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
ANY_HOST = frozenset(("/livez", "/readyz"))  # asked for by address, by whoever looks after us
_NAME = re.compile(rb"[A-Za-z0-9-]{1,64}")
_TARGET = re.compile(rb"[\x21-\x7e]{0,8192}")
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_HIDDEN = re.compile(rb"%(?:00|2[fF]|5[cC])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")

Headers = list[tuple[bytes, bytes]]


class RequestGuard:
    """Refuses with 400, 405, 413, 431-like `invalid` or 503 what should not go further."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Iterable[str],
        limits: Limits,
        crowded: Callable[[], bool] = lambda: False,
    ) -> None:
        self._app, self._limits, self._crowded = app, limits, crowded
        self._hosts = frozenset(host.encode() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            self._check(scope)
        except AlcoveError as error:
            await send_refusal(scope, send, error)
            return
        # Names with an underscore can pass for ours behind a CGI-like hop; nobody sends them for good.
        scope["headers"] = [(k, v) for k, v in scope["headers"] if _NAME.fullmatch(k)]
        await self._app(scope, self._bounded(receive), send)

    def _check(self, scope: Scope) -> None:
        if scope["method"] not in METHODS:
            raise AlcoveError("invalid", "this method is not known here", reason="method")
        if self._crowded():
            raise AlcoveError("unavailable", "too busy; try again soon", retry_after_s=2)
        headers: Headers = scope["headers"]
        self._check_headers(headers)
        check_target(scope["raw_path"], scope["query_string"])
        if scope["path"] not in ANY_HOST:
            self._check_host(headers)

    def _check_headers(self, headers: Headers) -> None:
        size = sum(len(k) + len(v) + 4 for k, v in headers)
        if len(headers) > self._limits.header_count or size > self._limits.header_bytes:
            raise AlcoveError("invalid", "the headers are too large", reason="headers")
        declared = [v for k, v in headers if k == b"content-length"]
        if declared and (len(declared) > 1 or not declared[0].isdigit()):
            raise AlcoveError("invalid", "the length is not a number", reason="content_length")
        if declared and int(declared[0]) > self._limits.body_bytes:
            raise _too_large(self._limits.body_bytes)

    def _check_host(self, headers: Headers) -> None:
        hosts = [v.lower() for k, v in headers if k == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            raise AlcoveError("invalid", "this is not a host of ours", reason="host")

    def _bounded(self, receive: Receive) -> Receive:
        seen = 0

        async def bounded() -> Message:
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > self._limits.body_bytes:
                    raise _too_large(self._limits.body_bytes)
            return message

        return bounded


def check_target(raw_path: bytes, query: bytes) -> None:
    """Raises `invalid` unless the path means one thing only and the query is plain ASCII."""
    decoded = unquote_to_bytes(raw_path)
    try:
        path = decoded.decode("utf-8", "strict")
    except UnicodeDecodeError:
        raise _bad_path() from None
    segments = path.split("/")
    good = (
        raw_path.startswith(b"/")
        and not raw_path.startswith(b"//")
        and _TARGET.fullmatch(raw_path)
        and _TARGET.fullmatch(query)
        and not _BAD_ESCAPE.search(raw_path)
        and not _HIDDEN.search(raw_path)
        and b"%00" not in query
        and not _CONTROL.search(path)
        and not {".", ".."} & set(segments)
    )
    if not good:
        raise _bad_path()


def _bad_path() -> AlcoveError:
    return AlcoveError("invalid", "this address is not well formed", reason="target")


def _too_large(most: int) -> AlcoveError:
    return AlcoveError("too_large", f"at most {most // 1024} KiB can be sent", reason="body")
