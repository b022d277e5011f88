"""`python -m agent`: the process in a tenant's container, from its settings to its last breath."""

import asyncio
import logging
import os
import signal
import sys

from agent import settings as environment
from agent.app import create_app
from agent.serve import listening
from infra.kit import log as logs
from infra.kit import unix
from infra.kit.errors import AlcoveError

log = logging.getLogger("agent")


async def _run(settings: environment.Settings) -> None:
    """Serves until SIGTERM or SIGINT; then at most 5 s for the turns and streams that are open.

    The socket is bound last, when a request can be answered. Its directory may become read-only
    for this process right after, and is never needed again.
    """
    leaving = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, leaving.set)
    app = create_app(settings)
    await app.start()
    async with listening(app, unix.bind(settings.socket)):
        log.info("ready")
        await leaving.wait()
        log.info("leaving")
        await app.stop()


def main() -> int:
    """Runs an agent. Exit code 2 when its settings are wrong."""
    try:
        settings = environment.from_environment(os.environ)
    except AlcoveError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    logs.configure("agent", settings.log_level)
    logs.bind(tenant=settings.tenant, generation=str(settings.generation))
    asyncio.run(_run(settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
