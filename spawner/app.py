"""A spawner at work: its control listener's application, its beginning and its end."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from infra.kit import service
from infra.kit.clock import Clock
from infra.kit.errors import AlcoveError
from infra.kit.schema import at_head
from spawner import api, choose, states, wiring
from spawner.choose import Chosen
from spawner.errors import NotMigrated
from spawner.instances import AT_REST, read_all
from spawner.settings import Settings
from spawner.wiring import Spawner

log = logging.getLogger(__name__)
_EXIT_S = 3.0


def create_app(spawner: Spawner) -> FastAPI:
    """The control listener's application."""

    async def starting() -> str | None:
        return spawner.breaker.paused()

    app = FastAPI(title="Alcove spawner", openapi_url=None, redirect_slashes=False)
    service.install(
        app,
        metrics=spawner.base.metrics,
        tracing=spawner.base.tracing,
        checks=[service.database_check(spawner.base.db, "spawner"), starting],
    )
    api.install(app, spawner)
    return app


@asynccontextmanager
async def running(
    settings: Settings, *, chosen: Chosen | None = None, clock: Clock | None = None
) -> AsyncIterator[Spawner]:
    """A spawner at work while the block runs: reconciled first, then driving, supervising, culling.

    `chosen`: the runtime, where a test brings its own. Raises CannotServe.
    """
    base = wiring.base(settings, clock=clock)
    try:
        if not await at_head(base.db, "spawner"):
            raise NotMigrated("the database is not migrated: run `python -m spawner migrate`")
        here = chosen or await choose.choose(settings, base.metrics)
        spawner = wiring.assemble(base, here)
        try:
            await _begin(spawner)
            yield spawner
        finally:
            await _end(spawner)
            await here.close()
    finally:
        await base.meter.close()
        await base.db.close()
        await asyncio.to_thread(base.tracing.close)


async def _begin(spawner: Spawner) -> None:
    """The first comparison, so that nobody is sent to an instance that died while nobody looked."""
    try:
        await spawner.reconcile()
    except (AlcoveError, states.Moved) as error:
        log.warning("first comparison failed; the jobs will repeat it", extra={"error": str(error)})
    spawner.jobs.start()


async def _end(spawner: Spawner) -> None:
    """Background work ends before what it works on; tenants only where the settings say so."""
    await spawner.jobs.stop()
    if spawner.base.settings.stop_on_exit:
        await _stop_tenants(spawner)
    await spawner.drivers.close()


async def _stop_tenants(spawner: Spawner) -> None:
    """Stops every tenant, all at once. What does not end in time is left to `python -m spawner sweep`."""
    async with spawner.base.db.read() as reading:
        everybody = await read_all(reading)
    rows = [row for row in everybody if row.state not in AT_REST or row.wanted_at is not None]
    message = "Alcove is shutting down"
    await asyncio.gather(
        *(spawner.ensure.asleep(row.tenant, message) for row in rows), return_exceptions=True
    )
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_EXIT_S):
            await asyncio.gather(*(spawner.drivers.settled(row.tenant) for row in rows))
