"""HTTP on a bound socket: uvicorn's protocol under asyncio's own server.

uvicorn's `Server` looks around ten times a second for as long as it lives, which is nothing for one
process and a busy core for hundreds of sleeping agents; and it dies of a SIGTERM again after having
obeyed it. What it does besides is the few lines below.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from agent.app import App
from infra.kit import unix

_LAST_ANSWERS_S = 1.0


@asynccontextmanager
async def listening(app: App, listener: socket.socket) -> AsyncIterator[None]:
    """Answers requests on `listener` while the block runs; closes it, with every connection, at the end.

    Requests under way then have a second to end; a stream has ended before (`App.stop`).
    """
    config = Config(
        app, http="h11", ws="none", lifespan="off", interface="asgi3", log_config=None, access_log=False,
        proxy_headers=False, server_header=False, date_header=False, limit_concurrency=256, timeout_keep_alive=75,
    )  # fmt: skip
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: H11Protocol(config, state, {}), sock=listener, backlog=unix.BACKLOG
    )
    try:
        yield
    finally:
        server.close()
        for connection in list(state.connections):
            connection.shutdown()
        if state.tasks:
            await asyncio.wait(state.tasks, timeout=_LAST_ANSWERS_S)
        for connection in list(state.connections):
            connection.transport.abort()
