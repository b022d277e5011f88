"""Serving without waiting: what `infra.kit.service.serving` does, less the ticks of a graceful end.

Hundreds of servers live and die in these tests; how the real one ends is tested in tests/gateway/test_process.py.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from infra.kit import address, unix
from infra.kit.bounded import bounded
from infra.kit.httpd.limits import Limits


@asynccontextmanager
async def serving(app: ASGIApp, url: str) -> AsyncIterator[str]:
    """Serves `app` at `url` while the block runs; gives the address that it really got."""
    where = address.parse(url)
    if where.path is not None:
        sock, bound = unix.bind(where.path), url
    else:
        sock = socket.create_server((where.host, where.port or 0))
        sock.setblocking(False)
        bound = f"http://{where.host}:{sock.getsockname()[1]}"
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        http=bounded(Limits()),
        loop="none",
        ws="none",
        lifespan="off",
        proxy_headers=False,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[sock])
    try:
        yield bound
    finally:
        await _stop(server)
        if where.path is not None:
            with contextlib.suppress(OSError):
                Path(where.path).unlink()


async def _stop(server: uvicorn.Server) -> None:
    for listener in server.servers:
        listener.close()
    state = server.server_state
    for connection in list(state.connections):
        connection.transport.abort()  # type: ignore[union-attr]
    tasks = list(state.tasks)
    done, pending = await asyncio.wait(tasks, timeout=0.5) if tasks else (set(), set())
    for task in pending:
        task.cancel()
    await asyncio.gather(*done, *pending, return_exceptions=True)
