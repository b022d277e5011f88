"""Putting idle instances to sleep, and waking those whose schedule comes due."""

import asyncio
import logging
from dataclasses import dataclass

from sqlalchemy import or_, select, update

from infra.kit.clock import Clock
from infra.kit.db import Database, Transaction
from infra.kit.errors import AlcoveError
from spawner import states
from spawner.drive import Drivers
from spawner.ensure import Ensure
from spawner.instances import Row, alive_because, duration, read, read_all
from spawner.journal import Journal
from spawner.jumps import Jumps
from spawner.metrics import SpawnerMetrics
from spawner.models import instance
from spawner.plans import Plans
from spawner.supervise import Supervise

log = logging.getLogger(__name__)
_AT_ONCE = 8
_WAKE_EARLY_S = 5


@dataclass(frozen=True, slots=True)
class Cull:
    """Stops whom nothing keeps awake."""

    db: Database
    journal: Journal
    supervise: Supervise
    drivers: Drivers
    plans: Plans
    metrics: SpawnerMetrics
    clock: Clock
    jumps: Jumps
    stop_timeout_s: float

    async def __call__(self) -> None:
        """One sweep. A stop that hangs holds up nobody: each has its own driver."""
        await self.jumps.follow()
        async with self.db.read() as reading:
            ready = await read_all(reading, "ready")
        places = asyncio.Semaphore(_AT_ONCE)

        async def consider(row: Row) -> None:
            async with places:
                await self._consider(row)

        await asyncio.gather(*(consider(row) for row in ready if self._idle(row)))

    async def _consider(self, row: Row) -> None:
        # Asked again, right before: it may have become busy since the last round.
        fresh = await self.supervise.visit(row)
        if fresh is None or not self._idle(fresh):
            return
        try:
            async with self.journal.transaction(row.tenant) as tx:
                now = await read(tx, row.tenant)
                if now is None or now.generation != row.generation or now.state != "ready":
                    return
                if not self._idle(now):  # a person came meanwhile
                    return
                idle = duration(round(self.plans.limits(now.plan).idle_s * 1000))
                message = f"Nobody needed it for {idle}; it is going to sleep"
                await states.to_stopping(tx, now, timeout_s=self.stop_timeout_s, message=message)
                await _forget_missed_schedule(tx, now)
        except states.Moved:
            return
        self.metrics.culled.inc()
        log.info("idle", extra={"tenant": row.tenant, "generation": row.generation})
        self.drivers.kick(row.tenant)

    def _idle(self, row: Row) -> bool:
        idle_s = self.plans.limits(row.plan).idle_s
        return alive_because(row, self.clock.now_at(), idle_s) is None


async def _forget_missed_schedule(tx: Transaction, row: Row) -> None:
    """A schedule that was due while the agent was awake, and that it left, wakes nobody any more."""
    await tx.execute(
        update(instance)
        .where(instance.c.tenant == row.tenant, instance.c.next_schedule_at < await tx.now_at())
        .values(next_schedule_at=None)
    )


@dataclass(frozen=True, slots=True)
class WakeForSchedules:
    """Wakes sleeping agents shortly before the schedule that they last named."""

    db: Database
    ensure: Ensure
    clock: Clock

    async def __call__(self) -> None:
        """One round. The schedule stays noted until the agent, awake, names its next one."""
        due_at = self.clock.now_at() + _WAKE_EARLY_S * 1000
        due = select(instance.c.tenant).where(
            instance.c.next_schedule_at <= due_at,
            instance.c.suspended.is_(False),
            instance.c.wanted_at.is_(None),
            or_(
                instance.c.state == "stopped",
                (instance.c.state == "failed") & (instance.c.failures <= states.RESTARTS),
            ),
        )
        async with self.db.read() as reading:
            tenants = [row["tenant"] for row in await reading.rows(due)]
        for tenant in tenants:
            try:
                await self.ensure.awake(tenant, "schedule")
            except AlcoveError as error:  # suspended meanwhile, or starts are paused: others go on
                log.info("not woken", extra={"tenant": tenant, "why": error.reason})
