"""The wiring of the spawner: everything is built here, from settings, and handed down."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import FastAPI

from infra.kit import service
from infra.kit.clock import Clock, SystemClock
from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from infra.kit.jobs import Job, Jobs
from infra.kit.tracing import Tracing
from metering_proxy.client import MeterClient
from spawner import api, choose, states
from spawner.agent_client import AgentClient
from spawner.choose import Chosen
from spawner.cull import Cull, WakeForSchedules
from spawner.drive import Drivers
from spawner.ensure import Ensure
from spawner.faults import Faults
from spawner.instances import AT_REST, Row, read_all
from spawner.journal import Journal
from spawner.keys import Keys
from spawner.metrics import SpawnerMetrics
from spawner.models import job_lease
from spawner.plans import Plans
from spawner.queue import Queue, StartRules
from spawner.reconcile import Reconcile
from spawner.settings import Settings
from spawner.spans import ForwardSpans
from spawner.start import Start
from spawner.stop import Stop
from spawner.supervise import Supervise
from spawner.undo import Undo

log = logging.getLogger(__name__)
_STOP_TIMEOUT_S = 30
_EXIT_GRACE_S = 2.0  # `make run` promises an end within 10 s, all services together
_EXIT_S = 3.0


@dataclass(frozen=True, slots=True)
class Spawner:
    """One spawner at work: its parts, for the API and for tests."""

    settings: Settings
    db: Database
    clock: Clock
    journal: Journal
    chosen: Chosen
    plans: Plans
    drivers: Drivers
    ensure: Ensure
    supervise: Supervise
    cull: Cull
    schedules: WakeForSchedules
    metrics: SpawnerMetrics
    tracing: Tracing
    jobs: Jobs
    queue: Queue

    async def stop_all(self) -> None:
        """Stops every tenant, all at once; what does not end in time is killed."""
        async with self.db.read() as reading:
            everybody = await read_all(reading)
        rows = [row for row in everybody if row.state not in AT_REST or row.wanted_at is not None]
        stops = [self.ensure.asleep(row.tenant, "The house is closing") for row in rows]
        await asyncio.gather(*stops, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_EXIT_S):
                await asyncio.gather(*(self.drivers.settled(row.tenant) for row in rows))


def create_app(spawner: Spawner) -> FastAPI:
    """The control listener's application."""
    app = FastAPI(title="Alcove spawner", openapi_url=None, redirect_slashes=False)
    service.install(
        app,
        metrics=spawner.metrics,
        tracing=spawner.tracing,
        checks=[service.database_check(spawner.db, "spawner")],
    )
    api.install(app, spawner)
    return app


@asynccontextmanager
async def running(
    settings: Settings, *, chosen: Chosen | None = None, clock: Clock | None = None
) -> AsyncIterator[Spawner]:
    """A spawner at work while the block runs: reconciled first, then driving, supervising, culling.

    `chosen`: the runtime, where a test brings its own. Raises NoRuntime. The database must be migrated.
    """
    metrics = SpawnerMetrics()
    own_clock = clock or SystemClock()
    db = Database(settings.database_url, clock=clock)
    meter = MeterClient(settings.meter_url, settings.service_secret)
    tracing = Tracing("spawner", settings.otlp_endpoint)
    try:
        here = chosen or await choose.choose(settings, metrics)
        spawner, reconcile = _wire(settings, db, own_clock, meter, here, metrics, tracing)
        try:
            await _work(spawner, reconcile)
            yield spawner
        finally:
            await spawner.jobs.stop()
            if settings.stop_on_exit:
                await spawner.stop_all()
            await spawner.drivers.close()
            await here.close()
    finally:
        await meter.close()
        await db.close()
        await asyncio.to_thread(tracing.close)


def _wire(
    settings: Settings,
    db: Database,
    clock: Clock,
    meter: MeterClient,
    here: Chosen,
    metrics: SpawnerMetrics,
    tracing: Tracing,
) -> tuple[Spawner, Reconcile]:
    runtime, layout = here.runtime, here.layout
    journal, keys = Journal(db), Keys(db, meter)
    faults = Faults(settings.fault if settings.test else None)
    plans = Plans.load(idle_s=settings.idle_s)
    agents = AgentClient(settings.deployment_secret, owner_uid=runtime.owner.uid)
    undo = Undo(runtime, keys, layout, faults)
    grace_s = settings.stop_grace_s
    if settings.stop_on_exit:
        grace_s = min(grace_s, _EXIT_GRACE_S)
    start = Start(
        journal,
        runtime,
        layout,
        keys,
        agents,
        plans,
        undo,
        metrics,
        faults,
        clock,
        settings.deployment_secret,
        settings.start_timeout_s,
    )
    stop = Stop(journal, undo, faults, clock, grace_s)

    async def step(row: Row) -> None:
        with tracing.span(f"instance {row.state}", generation=row.generation):
            await (stop(row) if row.state == "stopping" else start(row))

    rules = StartRules(runtime.name, settings.concurrent_starts, settings.start_timeout_s)
    drivers = Drivers(db, step, lambda: queue.nudge())
    queue = Queue(journal, rules, drivers.kick)
    reconcile = Reconcile(
        db,
        journal,
        runtime,
        layout,
        keys,
        undo,
        drivers,
        metrics,
        clock,
        settings.orphan_grace_s,
    )
    ensure = Ensure(journal, drivers, reconcile, plans, rules, queue.nudge, _STOP_TIMEOUT_S)
    supervise = Supervise(db, agents, reconcile, metrics, clock)
    cull = Cull(db, journal, supervise, drivers, plans, metrics, clock, _STOP_TIMEOUT_S)
    schedules = WakeForSchedules(db, ensure, clock)
    # Only this process may drive (serve.py holds the lock), so what must go on at once after a
    # restart needs no lease; the rest has one.
    work = [
        Job("supervise", settings.poll_s, supervise, everywhere=True),
        Job("hints", 1, lambda: supervise.watch(runtime.deaths), everywhere=True),
        Job("queue", 1, queue.run, everywhere=True),
        Job("cull", settings.poll_s, cull),
        Job("schedules", settings.poll_s, schedules),
    ]
    if settings.otlp_endpoint:
        spans = ForwardSpans(db, agents, settings.otlp_endpoint)
        work.append(Job("spans", settings.poll_s, spans))
    spawner = Spawner(
        settings,
        db,
        clock,
        journal,
        here,
        plans,
        drivers,
        ensure,
        supervise,
        cull,
        schedules,
        metrics,
        tracing,
        Jobs(db, job_lease, metrics, work),
        queue,
    )
    return spawner, reconcile


async def _work(spawner: Spawner, reconcile: Reconcile) -> None:
    """The first comparison, so that nobody is sent to an instance that died while nobody looked."""
    try:
        await reconcile()
    except (AlcoveError, states.Moved) as error:
        log.warning("first comparison failed; the jobs will repeat it", extra={"error": str(error)})
    spawner.jobs.start()
