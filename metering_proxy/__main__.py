"""`python -m metering_proxy [verb]`: docs/configuration.md says what each verb does."""

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict

import uvloop

from infra.kit import httpd, log, process, service, settings
from infra.kit.db import Database
from metering_proxy.app import PACKAGE, create_app
from metering_proxy.ledger.verify import verify
from metering_proxy.resealing import reseal
from metering_proxy.settings import MeterSettings

_log = logging.getLogger(__name__)
# Of bodies that all callers together have under way: a call's own takes a few times its bytes while it is read.
_BODIES_BYTES = 256 * 1024 * 1024
_VERBS = ("serve", "migrate", "check", "verify", "reseal")


def main(arguments: list[str]) -> int:
    """Does what the first argument says; answers the exit status."""
    verb = arguments[0] if arguments else "serve"
    if verb == "price-import":
        from metering_proxy import price_import  # no serving meter loads any of it

        return price_import.run(arguments[1:])
    if verb not in _VERBS or len(arguments) > 1:
        verbs = " | ".join([*_VERBS, "price-import …"])
        print(f"usage: python -m {PACKAGE} [{verbs}]", file=sys.stderr)  # noqa: T201
        return 64
    loaded = settings.load(MeterSettings)
    log.configure("meter", loaded.log_level)
    if verb == "migrate":
        from infra.kit import migrate  # nor of this

        migrate.main(Database(loaded.database_url, durable=True), PACKAGE)
    elif verb in _WORK:
        return asyncio.run(_with_database(loaded, _WORK[verb]))
    elif verb == "serve":
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(loaded))
    return 0


async def _serve(loaded: MeterSettings) -> None:
    most = service.raise_file_limit()
    capacity = httpd.Capacity(connections=most * 8 // 10, body_bytes=_BODIES_BYTES)
    meter = create_app(loaded, capacity=capacity)
    _log.info("starting", extra={"files": most})
    async with meter.running(), service.serving(meter.app, loaded.listen):
        _log.info("serving", extra={"listen": loaded.listen})
        await process.run_until_signal()
        _log.info("stopping", extra={"running": len(meter.ledger.running)})
    _log.info("stopped")


async def _with_database(loaded: MeterSettings, work: "Work") -> int:
    db = Database(loaded.database_url, durable=True)
    try:
        return await work(db, loaded)
    finally:
        await db.close()


async def _verify(db: Database, _: MeterSettings) -> int:
    """Proves the ledger; 1 where it does not agree with itself."""
    verdict = await verify(db)
    print(json.dumps({"whole": verdict.whole, **asdict(verdict)}))  # noqa: T201
    return 0 if verdict.whole else 1


async def _reseal(db: Database, loaded: MeterSettings) -> int:
    """Seals what an older key sealed with the current one."""
    print(json.dumps({"resealed": await reseal(db, loaded.sealer)}))  # noqa: T201
    return 0


Work = Callable[[Database, MeterSettings], Awaitable[int]]
_WORK: dict[str, Work] = {"verify": _verify, "reseal": _reseal}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
