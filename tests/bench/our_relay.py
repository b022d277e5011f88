"""Our relay as a process of its own: `python -m tests.bench.our_relay <kind> <url> <upstream> <token>`.

Both kinds do the same work: look the caller's token up by its digest, strip hop-by-hop headers both
ways, pass bytes on as they come.
"""

import asyncio
import hashlib
import signal
import socket
import sys
from typing import Any

import uvloop

from infra.kit import address, httpd, service, unix
from infra.kit.errors import AlcoveError
from infra.kit.relay import ProtocolUpstream, RelayRequest, Upstream, end_to_end
from tests.kit.relay.over_aiohttp import HttpUpstream

Tenants = dict[bytes, str]


def tenant_of(tenants: Tenants, authorization: str) -> str:
    """Whose token this is. Raises `unauthorized`."""
    kind, _, token = authorization.partition(" ")
    tenant = tenants.get(hashlib.sha256(token.encode()).digest())
    if kind.lower() != "bearer" or tenant is None:
        raise AlcoveError("unauthorized", "this call needs a token")
    return tenant


def on_httpd(tenants: Tenants, upstream: Upstream) -> httpd.Handler:
    """The relay on our own server."""

    async def handle(request: httpd.Request) -> None:
        tenant_of(tenants, "".join(request.values("authorization")[:1]))
        request.trust()
        asked = RelayRequest(
            request.method, request.target, end_to_end(request.headers), await request.body()
        )
        response = await upstream.open(asked)
        try:
            await request.start(response.status, end_to_end(response.headers))
            async for chunk in response.chunks():
                await request.write(chunk)
        finally:
            await response.close()

    return handle


def on_asgi(tenants: Tenants, upstream: Upstream) -> Any:
    """The relay as an ASGI application, as small as one can be."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in scope["headers"]]
        tenant_of(tenants, dict(headers).get("authorization", ""))
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        target = scope["raw_path"].decode()
        if scope["query_string"]:
            target += "?" + scope["query_string"].decode()
        response = await upstream.open(
            RelayRequest(scope["method"], target, end_to_end(headers), body)
        )
        try:
            kept = [(k.encode(), v.encode("latin-1")) for k, v in end_to_end(response.headers)]
            await send({"type": "http.response.start", "status": response.status, "headers": kept})
            async for chunk in response.chunks():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await response.close()

    return app


async def main(kind: str, url: str, upstream_url: str, token: str) -> None:
    """Serves until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    service.raise_file_limit()
    tenants = {hashlib.sha256(token.encode()).digest(): "a-tenant"}
    if kind == "protocol":
        where = address.parse(url)
        async with ProtocolUpstream(upstream_url, limit=4096) as fast:
            sock = socket.create_server((where.host, where.port), backlog=unix.BACKLOG)
            limits = httpd.Limits(unproven=4096, connections=8192)
            listener = await httpd.listen(sock, on_httpd(tenants, fast), limits=limits)
            await stop.wait()
            await listener.close(grace_s=0)
    else:
        slow = HttpUpstream(upstream_url, limit=4096)
        async with slow, service.serving(on_asgi(tenants, slow), url, grace_s=0):
            await stop.wait()


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
