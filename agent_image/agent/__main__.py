"""`python -m agent`: the process in a tenant's container, from its settings to its last breath."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterator

import uvicorn

from agent import settings as environment
from agent.app import create_app
from infra.kit import log as logs
from infra.kit import unix
from infra.kit.errors import AlcoveError

log = logging.getLogger("agent")


class _Server(uvicorn.Server):
    """uvicorn without its signals: it would die of a SIGTERM again after having obeyed it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to `_serve`."""
        yield


async def _serve(settings: environment.Settings) -> None:
    """Serves until SIGTERM or SIGINT; then at most 5 s for the turns and streams that are open.

    The socket is bound last, when a request can be answered; its directory may become read-only
    for this process right after, and is never needed again.
    """
    leaving = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leaving.set)
    app = create_app(settings)
    await app.start()
    config = uvicorn.Config(
        app, http="h11", loop="asyncio", ws="none", lifespan="off", interface="asgi3",
        log_config=None, access_log=False, proxy_headers=False, server_header=False, date_header=False,
        backlog=unix.BACKLOG, limit_concurrency=256, timeout_keep_alive=75, timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = _Server(config)
    with unix.bind(settings.socket) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        gone = asyncio.create_task(leaving.wait())
        await asyncio.wait({serving, gone}, return_when=asyncio.FIRST_COMPLETED)
        log.info("leaving")
        await app.stop()
        server.should_exit = True
        gone.cancel()
        await serving


def main() -> int:
    """Runs an agent. Exit code 2 when its settings are wrong."""
    try:
        settings = environment.from_environment(os.environ)
    except AlcoveError as error:
        print(error.message, file=sys.stderr)  # noqa: T201 (no log is configured yet)
        return 2
    logs.configure("agent", settings.log_level)
    logs.bind(tenant=settings.tenant, generation=str(settings.generation))
    asyncio.run(_serve(settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
