"""`python -m spawner`: serves until SIGTERM. Other verbs: migrate, check, sweep (docs/configuration.md)."""

import asyncio
import logging
import os
import sys

from infra.kit import address, log, process, service, settings
from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from spawner import lock
from spawner.app import create_app, running
from spawner.choose import Chosen
from spawner.errors import CannotServe
from spawner.settings import Settings
from spawner.sweep import sweep

_log = logging.getLogger(__name__)


async def serve(found: Settings, *, chosen: Chosen | None = None) -> None:
    """Works until a signal: the socket appears once the first comparison is done."""
    where = address.parse(found.listen)
    if where.path is not None:
        where.path.parent.mkdir(parents=True, exist_ok=True)
    with lock.only_one(found.sockets_dir):
        async with running(found, chosen=chosen) as spawner:
            async with service.serving(create_app(spawner), found.listen, grace_s=1) as url:
                runtime = spawner.chosen.runtime
                _log.info("serving", extra={"url": url, "runtime": runtime.name})
                await process.run_until_signal()
            _log.info("stopping", extra={"tenants_too": found.stop_on_exit})


def main(arguments: list[str]) -> int:
    """Runs one verb; the exit code says how it went."""
    verb = arguments[0] if arguments else "serve"
    if verb not in ("serve", "migrate", "check", "sweep") or len(arguments) > 1:
        print("usage: python -m spawner [migrate|check|sweep]", file=sys.stderr)  # noqa: T201
        return 64  # EX_USAGE of sysexits.h
    found = settings.load(Settings)
    if verb == "check":
        return 0
    os.umask(0o007)
    log.configure("spawner", found.log_level)
    service.raise_file_limit()
    try:
        if verb == "migrate":
            from infra.kit import migrate  # ten megabytes that no serving spawner needs

            migrate.main(Database(found.database_url), "spawner")
        elif verb == "sweep":
            asyncio.run(sweep(found))
        else:
            asyncio.run(serve(found))
    except (CannotServe, AlcoveError) as error:
        _log.error("cannot serve", extra={"why": str(error)})
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
