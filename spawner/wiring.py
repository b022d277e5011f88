"""The parts of one spawner and how they hang together. Nothing runs yet: app.py sets it to work."""

from collections.abc import Callable
from dataclasses import dataclass

from infra.kit.clock import Clock, SystemClock
from infra.kit.db import Database
from infra.kit.jobs import Job, Jobs
from infra.kit.tracing import Tracing
from metering_proxy.client import MeterClient
from spawner import wire
from spawner.agent_client import AgentClient
from spawner.breaker import Breaker
from spawner.choose import Chosen
from spawner.cull import Cull, WakeForSchedules
from spawner.drive import Drivers
from spawner.ensure import Ensure
from spawner.faults import Faults
from spawner.instances import Row, outside
from spawner.journal import Journal
from spawner.jumps import Jumps
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
from spawner.storage import EVERY_S, Storage
from spawner.supervise import Supervise
from spawner.undo import Undo

_STOP_TIMEOUT_S = 30
_EXIT_GRACE_S = 2.0  # `make run` promises an end within 10 s, all services together


@dataclass(frozen=True, slots=True)
class Base:
    """What everything else stands on."""

    settings: Settings
    db: Database
    meter: MeterClient
    metrics: SpawnerMetrics
    tracing: Tracing
    clock: Clock


@dataclass(frozen=True, slots=True)
class Spawner:
    """One spawner: its parts, for the API and for tests."""

    base: Base
    chosen: Chosen
    plans: Plans
    journal: Journal
    drivers: Drivers
    nudge: Callable[[], None]
    breaker: Breaker
    reconcile: Reconcile
    ensure: Ensure
    supervise: Supervise
    cull: Cull
    storage: Storage
    schedules: WakeForSchedules
    jobs: Jobs

    def shown(self, row: Row) -> wire.Instance:
        """The row as callers see it."""
        return outside(
            row,
            now_at=self.base.clock.now_at(),
            plans=self.plans,
            owner_uid=self.chosen.runtime.owner.uid,
        )


def base(settings: Settings, *, clock: Clock | None = None) -> Base:
    """Database, clients and instruments, as the settings say. `clock`: a test's own."""
    return Base(
        settings=settings,
        db=Database(settings.database_url, clock=clock),
        meter=MeterClient(settings.meter_url, settings.service_secret),
        metrics=SpawnerMetrics(),
        tracing=Tracing("spawner", settings.otlp_endpoint),
        clock=clock or SystemClock(),
    )


def assemble(on: Base, chosen: Chosen) -> Spawner:
    """A whole spawner, at rest, on the runtime that was chosen."""
    settings, db, clock, metrics = on.settings, on.db, on.clock, on.metrics
    runtime, layout = chosen.runtime, chosen.layout
    plans = Plans.load(idle_s=settings.idle_s)
    faults = Faults(settings.fault if settings.test else None)
    journal, keys = Journal(db), Keys(db, on.meter)
    agents = AgentClient(settings.deployment_secret, owner_uid=runtime.owner.uid)
    undo = Undo(runtime, keys, layout, faults)
    breaker = Breaker(clock, metrics)
    start = Start(
        journal=journal,
        runtime=runtime,
        layout=layout,
        keys=keys,
        agents=agents,
        plans=plans,
        undo=undo,
        breaker=breaker,
        metrics=metrics,
        faults=faults,
        clock=clock,
        deployment_secret=settings.deployment_secret,
        timeout_s=settings.start_timeout_s,
    )
    grace_s = settings.stop_grace_s
    if settings.stop_on_exit:
        grace_s = min(grace_s, _EXIT_GRACE_S)
    stop = Stop(journal=journal, undo=undo, faults=faults, clock=clock, grace_s=grace_s)

    async def step(row: Row) -> None:
        with on.tracing.span(f"instance {row.state}", generation=row.generation):
            await (stop(row) if row.state == "stopping" else start(row))

    rules = StartRules(runtime.name, settings.concurrent_starts, settings.start_timeout_s, breaker)
    drivers = Drivers(db, step, at_rest=lambda: queue.nudge())
    queue = Queue(journal, rules, begun=drivers.kick)
    reconcile = Reconcile(
        db=db,
        journal=journal,
        runtime=runtime,
        layout=layout,
        keys=keys,
        undo=undo,
        drivers=drivers,
        metrics=metrics,
        clock=clock,
        nudge=queue.nudge,
        orphan_grace_s=settings.orphan_grace_s,
    )
    ensure = Ensure(
        journal=journal,
        drivers=drivers,
        reconcile=reconcile,
        plans=plans,
        rules=rules,
        nudge=queue.nudge,
        stop_timeout_s=_STOP_TIMEOUT_S,
    )
    jumps = Jumps(db, clock)
    supervise = Supervise(db, agents, reconcile, metrics, clock, jumps)
    cull = Cull(
        db=db,
        journal=journal,
        supervise=supervise,
        drivers=drivers,
        plans=plans,
        metrics=metrics,
        clock=clock,
        jumps=jumps,
        stop_timeout_s=_STOP_TIMEOUT_S,
    )
    storage = Storage(db, journal, runtime, plans, drivers, metrics, _STOP_TIMEOUT_S)
    schedules = WakeForSchedules(db, ensure, clock)
    # There is one spawner to a sockets root (lock.py), so what must go on at once after a restart
    # needs no lease; the rest has one.
    jobs = [
        Job("supervise", settings.poll_s, supervise, everywhere=True),
        Job("hints", 1, lambda: supervise.watch(runtime.deaths), everywhere=True),
        Job("queue", 1, queue.run, everywhere=True),
        Job("cull", settings.poll_s, cull),
        Job("storage", EVERY_S, storage),
        Job("schedules", settings.poll_s, schedules),
    ]
    if settings.otlp_endpoint:
        jobs.append(Job("spans", settings.poll_s, ForwardSpans(db, agents, settings.otlp_endpoint)))
    return Spawner(
        base=on,
        chosen=chosen,
        plans=plans,
        journal=journal,
        drivers=drivers,
        nudge=queue.nudge,
        breaker=breaker,
        reconcile=reconcile,
        ensure=ensure,
        supervise=supervise,
        cull=cull,
        storage=storage,
        schedules=schedules,
        jobs=Jobs(db, job_lease, metrics, jobs),
    )
