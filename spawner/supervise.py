"""Asking every ready agent how busy it is, and noticing those that no longer answer."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from sqlalchemy import func, select, update

from infra.kit.clock import Clock
from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from spawner import wire
from spawner.agent_client import AgentClient, Status
from spawner.instances import Row, read_all
from spawner.jumps import Jumps
from spawner.metrics import SpawnerMetrics
from spawner.models import instance
from spawner.reconcile import Reconcile

log = logging.getLogger(__name__)
_AT_ONCE = 16
_SILENT_TIMES = 6
_LOOK_AGAIN_S = (0.0, 0.05, 0.1, 0.2, 0.4)
_LONGEST_LEASE_S = (
    3600  # however long an agent asks to stay awake, it must ask again within the hour
)


@dataclass(frozen=True, slots=True)
class Supervise:
    """Polls agents; the database is told what they say."""

    db: Database
    agents: AgentClient
    reconcile: Reconcile
    metrics: SpawnerMetrics
    clock: Clock
    jumps: Jumps
    _silent: dict[tuple[str, int], int] = field(default_factory=dict)

    async def __call__(self) -> None:
        """One round over every ready instance, then the comparison with the runtime."""
        await self.jumps.follow()
        async with self.db.read() as reading:
            ready = await read_all(reading, "ready")
        places = asyncio.Semaphore(_AT_ONCE)

        async def visit(row: Row) -> None:
            async with places:
                await self.visit(row)

        await asyncio.gather(*(visit(row) for row in ready))
        names = {(row.tenant, row.generation) for row in ready}
        for name in set(self._silent) - names:
            del self._silent[name]
        await self._count()
        await self.reconcile()

    async def visit(self, row: Row) -> Row | None:
        """Asks one agent and notes its answer; gives the row as it then is, None where it was silent."""
        name = (row.tenant, row.generation)
        assert row.url is not None
        try:
            status = await self.agents.status(row.url, row.tenant, row.generation)
        except AlcoveError as error:
            times = self._silent[name] = self._silent.get(name, 0) + 1
            log.info(
                "agent silent", extra={"tenant": row.tenant, "times": times, "why": error.code}
            )
            if times >= _SILENT_TIMES or error.reason == "untrusted_socket":
                await self.reconcile.fail(row, wire.Problem(code="silent", message=error.message))
            return None
        self._silent.pop(name, None)
        return await self._note(row, status)

    async def watch(self, deaths: Callable[[], AsyncIterator[str]]) -> None:
        """Looks at once where the runtime hints that something ended. Runs until it is cancelled."""
        while True:
            try:
                async with asyncio.TaskGroup() as looks:
                    async for tenant in deaths():
                        looks.create_task(self._look(tenant))
                await self.reconcile()  # the line broke: whatever happened meanwhile was not told
            except AlcoveError as error:
                log.warning("no hints from the runtime", extra={"error": error.message})
            await asyncio.sleep(1)

    async def _look(self, tenant: str) -> None:
        """Follows one hint; an engine tells of a death a little before it knows of it itself."""
        for pause_s in _LOOK_AGAIN_S:
            await asyncio.sleep(pause_s)
            try:
                if not await self.reconcile.look(tenant):
                    return
            except AlcoveError as error:
                log.info("hint not followed", extra={"tenant": tenant, "error": error.message})

    async def _note(self, row: Row, status: Status) -> Row | None:
        async with self.db.transaction() as tx:
            now_at = await tx.now_at()
            lease = status.busy_until_at
            if lease is not None:
                lease = min(lease, now_at + _LONGEST_LEASE_S * 1000)
            await tx.execute(
                update(instance)
                .where(
                    instance.c.tenant == row.tenant,
                    instance.c.state == "ready",
                    instance.c.generation == row.generation,
                )
                .values(
                    in_flight=status.in_flight,
                    waiting=status.waiting,
                    unread=status.unread,
                    oom_kills=status.oom_kills,
                    busy_until_at=lease,
                    next_schedule_at=status.next_schedule_at,
                    busy_at=now_at if status.in_flight else row.busy_at,
                    status_at=now_at,
                )
            )
            found = await tx.row(select(instance).where(instance.c.tenant == row.tenant))
        return Row.of(found) if found else None

    async def _count(self) -> None:
        query = select(instance.c.state, func.count().label("n")).group_by(instance.c.state)
        async with self.db.read() as reading:
            counts = {row["state"]: row["n"] for row in await reading.rows(query)}
            waiting = await reading.value(
                select(func.count()).where(instance.c.wanted_at.is_not(None))
            )
        self.metrics.counted(counts, int(waiting))
