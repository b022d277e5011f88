"""What the database says beside what the runtime has, made one again, in both directions.

Pending is untouchable: a row in a transient state belongs to its driver, which is kicked and left alone.
A restart of the spawner comes through here and through nothing else, so it stops and restarts nobody.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from infra.kit import address, unix
from infra.kit.clock import Clock
from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from spawner import queue, states, wire
from spawner.drive import Drivers
from spawner.instances import AT_REST, TRANSIENT, Row, read, read_all
from spawner.journal import Journal
from spawner.keys import Keys
from spawner.layout import Layout
from spawner.metrics import SpawnerMetrics
from spawner.runtimes import Found, Runtime
from spawner.undo import Undo

log = logging.getLogger(__name__)
_MISSED_S = 120  # a person seen so recently waits for an answer


@dataclass(frozen=True, slots=True)
class Reconcile:
    """Compares, and acts on what differs. Safe to run at any time, and again."""

    db: Database
    journal: Journal
    runtime: Runtime
    layout: Layout
    keys: Keys
    undo: Undo
    drivers: Drivers
    metrics: SpawnerMetrics
    clock: Clock
    nudge: Callable[[], None]
    orphan_grace_s: float

    async def __call__(self) -> None:
        """The whole comparison. Raises `unavailable` where the runtime cannot be asked."""
        # Order matters: what was ready before the list was taken must be in the list, and whatever
        # is seen (instances, directories) is judged by rows that are read after it.
        async with self.db.read() as reading:
            ready = await read_all(reading, "ready")
        found = await self.runtime.instances()
        by_name = {(one.tenant, one.generation): one for one in found}
        for row in ready:
            await self._judge(row, by_name.get((row.tenant, row.generation)))
        places = list(self.layout.generations())
        async with self.db.read() as reading:
            rows = {row.tenant: row for row in await read_all(reading)}
        for known in rows.values():
            if known.state in TRANSIENT:
                self.drivers.kick(known.tenant)
        for one in found:
            await self._sweep(one)
        there = {(one.tenant, one.generation) for one in found}
        await self._sweep_keys(there, rows)
        for tenant, generation in places:
            over = _over(rows.get(tenant), generation) or _unknown(rows.get(tenant), generation)
            if over and (tenant, generation) not in there:
                self.layout.remove(tenant, generation)

    async def look(self, tenant: str) -> bool:
        """The comparison for one tenant, now; whether it is ready and stays so."""
        async with self.db.read() as reading:
            row = await read(reading, tenant)
        if row is None or row.state != "ready":
            return False
        found = await self.runtime.instances(tenant)
        mine = [one for one in found if one.generation == row.generation]
        return await self._judge(row, mine[0] if mine else None)

    async def answers(self, row: Row) -> bool:
        """Whether somebody listens at the instance's address; nothing is sent."""
        where = address.parse(row.url or "").path
        assert isinstance(where, Path)
        try:
            owner_uid = self.runtime.owner.uid
            (await unix.connect(where, owner_uid=owner_uid, timeout_s=1.0)).close()
        except OSError:
            return False
        return True

    async def fail(self, row: Row, problem: wire.Problem) -> None:
        """Ends a ready instance that does not do its work; starts it anew where somebody waits for it."""
        try:
            async with self.journal.transaction(row.tenant) as tx:
                failed = await states.to_failed(tx, row, problem)
                if self._goes_on(failed, row):
                    await queue.want(tx, failed, "crash")
        except states.Moved:
            return
        self.metrics.deaths.labels(problem.code).inc()
        log.warning("instance failed", extra={"tenant": row.tenant, "code": problem.code})
        self.nudge()
        await self._undo(row.tenant, row.generation)

    async def _judge(self, row: Row, found: Found | None) -> bool:
        """Acts on what was found of a ready instance; whether it may stay ready."""
        if found is not None and found.running:
            return True
        if found is None and await self.answers(row):
            # A list that is not whole (an engine that has just begun again) would end a living turn.
            log.warning("not in the runtime's list, yet it answers", extra={"tenant": row.tenant})
            return True
        if found is not None and found.exit_code != 0:
            await self.fail(row, _death(found))
            return False
        try:
            async with self.journal.transaction(row.tenant) as tx:
                stopped = await states.to_stopped(tx, row, message="It was stopped from outside")
                if self._goes_on(stopped, row):  # an engine that begins again ends its containers
                    await queue.want(tx, stopped, "crash")
        except states.Moved:
            return False
        self.metrics.deaths.labels("removed").inc()
        log.warning("instance is gone", extra={"tenant": row.tenant})
        self.nudge()
        await self._undo(row.tenant, row.generation)
        return False

    async def _sweep(self, found: Found) -> None:
        """Removes an instance that no row stands for: one that has ended, or one never heard of."""
        async with self.db.read() as reading:
            row = await read(reading, found.tenant)
        young = self.clock.now_at() - found.created_at < self.orphan_grace_s * 1000
        over = _over(row, found.generation)
        if over or (_unknown(row, found.generation) and not young):
            log.warning(
                "orphan removed", extra={"tenant": found.tenant, "generation": found.generation}
            )
            self.metrics.orphans.inc()
            await self._undo(found.tenant, found.generation)

    async def _sweep_keys(self, there: set[tuple[str, int]], rows: dict[str, Row]) -> None:
        """Takes back the keys of generations that are proven gone."""
        for tenant, generation in await self.keys.noted():
            if (tenant, generation) not in there and _over(rows.get(tenant), generation):
                await self.keys.release(tenant, generation)

    async def _undo(self, tenant: str, generation: int) -> None:
        try:
            await self.undo(tenant, generation, grace_s=0)
        except (AlcoveError, OSError) as error:
            log.warning("not undone yet", extra={"tenant": tenant, "error": str(error)})

    def _goes_on(self, ended: Row, before: Row) -> bool:
        """Whether an instance that ended unasked is started again: somebody waits for it, and it is no
        crash loop yet."""
        recent = self.clock.now_at() - _MISSED_S * 1000
        waits = before.in_flight or before.waiting or (before.person_at or 0) > recent
        return bool(waits) and ended.failures <= states.RESTARTS and not ended.suspended


def _over(row: Row | None, generation: int) -> bool:
    """Whether the row says that this generation has ended."""
    if row is None:
        return False
    return generation < row.generation or (generation == row.generation and row.state in AT_REST)


def _unknown(row: Row | None, generation: int) -> bool:
    """Whether the database never heard of this generation (it may have been restored)."""
    return row is None or generation > row.generation


def _death(found: Found) -> wire.Problem:
    if found.oom_killed:
        return wire.Problem(code="out_of_memory", message="the agent ran out of memory")
    how = "" if found.exit_code is None else f" (exit code {found.exit_code})"
    return wire.Problem(code="agent_died", message=f"the agent ended unexpectedly{how}")
