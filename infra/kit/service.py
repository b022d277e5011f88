"""What every service's HTTP side shares: request ids, coded errors, health, metrics, and serving.

Pure ASGI middleware only: a wrapped response body would hide that a client has left.
"""

import asyncio
import contextlib
import logging
import re
import resource
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from opentelemetry.trace import SpanKind
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from infra.kit import address, ids, log, unix
from infra.kit.bounded import bounded
from infra.kit.db import Database
from infra.kit.errors import AlcoveError, from_response
from infra.kit.httpd.limits import Limits
from infra.kit.metrics import Metrics
from infra.kit.schema import at_head
from infra.kit.tracing import Tracing

_log = logging.getLogger(__name__)
_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
Check = Callable[[], Awaitable[str | None]]


def install(
    app: FastAPI,
    *,
    metrics: Metrics,
    tracing: Tracing,
    checks: Iterable[Check] = (),
    expose_metrics: bool = True,
    trust_request_id: bool = True,
) -> None:
    """Gives `app` its error answers, `/livez`, `/readyz`, `/metrics` and the request middleware.

    `checks` answer None or the reason why the service is not ready. `trust_request_id`: whether the
    caller's `x-request-id` is kept (services) or a new one is made (the public port).
    """
    app.add_exception_handler(AlcoveError, _coded)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _left)
    app.add_exception_handler(Exception, _internal)
    app.add_middleware(_Requests, metrics=metrics, tracing=tracing, trust=trust_request_id)

    @app.get("/livez", include_in_schema=False)
    async def livez() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        reasons = [reason for check in checks if (reason := await check())]
        if reasons:
            return JSONResponse({"status": "not ready", "reasons": reasons}, status_code=503)
        return JSONResponse({"status": "ok"})

    if expose_metrics:

        @app.get("/metrics", include_in_schema=False)
        async def metrics_page() -> Response:
            body, kind = metrics.render()
            return Response(body, media_type=kind)


def database_check(db: Database, package: str) -> Check:
    """A readiness check: the database answers and its migrations are at head."""

    async def check() -> str | None:
        try:
            await asyncio.wait_for(db.ping(), 2)
            if not await at_head(db, package):
                return f"the database is not migrated: run `python -m {package} migrate`"
        except Exception as error:
            return f"the database does not answer ({type(error).__name__})"
        return None

    return check


def require_secret(secret: str) -> Callable[[Request], Awaitable[None]]:
    """A dependency that lets in who carries `Authorization: Bearer <secret>`; else `unauthorized`."""

    async def check(request: Request) -> None:
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not ids.same(given, secret):
            raise AlcoveError("unauthorized", "this call needs the service secret")

    return check


async def _coded(request: Request, error: Exception) -> Response:
    assert isinstance(error, AlcoveError)
    headers = {}
    retry_after = error.details.get("retry_after_s")
    if isinstance(retry_after, int):
        headers["retry-after"] = str(retry_after)
    return JSONResponse(error.body(_request_id(request)), error.status, headers)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    fields = [
        {"field": ".".join(str(part) for part in item["loc"][1:]), "problem": item["msg"]}
        for item in error.errors()
    ]
    coded = AlcoveError("invalid", "the request is not of the expected form", fields=fields)
    return JSONResponse(coded.body(_request_id(request)), coded.status)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    coded = from_response(error.status_code, None)
    coded = AlcoveError(coded.code, str(error.detail))
    return JSONResponse(coded.body(_request_id(request)), error.status_code, error.headers)


async def _left(request: Request, error: Exception) -> Response:
    """The caller went away while its body was read: nobody's fault, and nobody reads this answer."""
    return Response(status_code=499)


async def _internal(request: Request, error: Exception) -> Response:
    coded = AlcoveError("internal", "something went wrong on our side; it has been logged")
    return JSONResponse(coded.body(_request_id(request)), 500)


def _request_id(request: Request) -> str | None:
    found = request.scope.get("alcove_request_id")
    return found if isinstance(found, str) else None


class _Requests:
    """Gives each request its id, its log line, its span and its numbers."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, tracing: Tracing, trust: bool) -> None:
        self._app, self._metrics, self._tracing, self._trust = app, metrics, tracing, trust

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        given = headers.get("x-request-id", "") if self._trust else ""
        request_id = given if _REQUEST_ID.fullmatch(given) else ids.ulid()
        scope["alcove_request_id"] = request_id
        parent = (
            {"traceparent": headers["traceparent"]}
            if self._trust and "traceparent" in headers
            else None
        )
        started, status = time.perf_counter(), 500

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        with log.bound(request_id=request_id), self._span(scope, parent, request_id):
            try:
                await self._app(scope, receive, send_with_id)
            finally:
                self._count(scope, status, time.perf_counter() - started)

    def _span(
        self, scope: Scope, parent: dict[str, str] | None, request_id: str
    ) -> contextlib.AbstractContextManager[object]:
        if not self._tracing.enabled:
            return contextlib.nullcontext()
        return self._tracing.span(
            f"{scope['method']} {scope['path']}",
            parent=parent,
            kind=SpanKind.SERVER,
            **{"http.request.method": scope["method"], "alcove.request_id": request_id},
        )

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route = scope.get("route")
        template = getattr(route, "path", None) or "(none)"
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.requests.labels(method, template, str(status)).inc()
        self._metrics.seconds.labels(method, template).observe(seconds)
        if template not in _QUIET:
            _log.info(
                "request",
                extra={
                    "method": method,
                    "route": template,
                    "status": status,
                    "ms": round(seconds * 1000, 1),
                },
            )


_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
_QUIET = {"/livez", "/readyz", "/metrics"}


class _Server(uvicorn.Server):
    """A server that leaves signals to `infra.kit.process`: a process has several of them."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(
    app: ASGIApp,
    url: str,
    *,
    mode: int = 0o660,
    grace_s: int = 5,
    trusted_proxies: str | None = None,
    limits: Limits | None = None,
) -> AsyncIterator[str]:
    """Serves `app` at `url` while the block runs; gives the address that it really got (port 0).

    `limits`: of heads and of waiting; sizes of bodies and numbers of connections are not looked at here.
    On leaving: no new connections, then up to `grace_s` for what is under way.
    """
    where = address.parse(url)
    if where.is_unix:
        assert where.path is not None
        sock = unix.bind(where.path, mode=mode)
        bound = url
    else:
        sock = _tcp(where.host or "127.0.0.1", where.port or 0)
        bound = f"http://{where.host}:{sock.getsockname()[1]}"
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        http=bounded(limits or Limits()),
        loop="none",
        ws="none",
        lifespan="off",
        backlog=unix.BACKLOG,
        server_header=False,
        date_header=True,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=grace_s,
        proxy_headers=trusted_proxies is not None,
        forwarded_allow_ips=trusted_proxies,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        while not server.started:
            if task.done():
                await task
            await asyncio.sleep(0.005)
        yield bound
    finally:
        server.should_exit = True
        await task
        if where.is_unix and where.path is not None:
            with contextlib.suppress(OSError):
                Path(where.path).unlink()


def _tcp(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((host, port))
    sock.setblocking(False)
    return sock


def raise_file_limit(wanted: int = 65_536) -> int:
    """Raises RLIMIT_NOFILE towards `wanted` as far as the hard limit lets; answers what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    return max(soft, target)
