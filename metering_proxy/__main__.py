"""`python -m metering_proxy [serve | migrate | check]`: docs/configuration.md says what each does."""

import asyncio
import logging
import sys

import uvloop

from infra.kit import httpd, log, migrate, process, service, settings
from infra.kit.db import Database
from metering_proxy.app import PACKAGE, create_app
from metering_proxy.settings import MeterSettings

_log = logging.getLogger(__name__)
_VERBS = ("serve", "migrate", "check")


def main(arguments: list[str]) -> int:
    """Does what the first argument says; answers the exit status."""
    verb = arguments[0] if arguments else "serve"
    if verb not in _VERBS or len(arguments) > 1:
        print(f"usage: python -m {PACKAGE} [{' | '.join(_VERBS)}]", file=sys.stderr)  # noqa: T201
        return 64
    loaded = settings.load(MeterSettings)
    log.configure("meter", loaded.log_level)
    if verb == "migrate":
        migrate.main(Database(loaded.database_url, durable=True), PACKAGE)
    elif verb == "serve":
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(loaded))
    return 0


async def _serve(loaded: MeterSettings) -> None:
    most = service.raise_file_limit()
    meter = create_app(loaded, capacity=httpd.Capacity(connections=most * 8 // 10))
    _log.info("starting", extra={"files": most})
    async with meter.running(), service.serving(meter.app, loaded.listen):
        _log.info("serving", extra={"listen": loaded.listen})
        await process.run_until_signal()
        _log.info("stopping", extra={"running": len(meter.ledger.running)})
    _log.info("stopped")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
