"""What callers may ask of an instance: run, sleep, stay refused. Each answers at once; drivers do the rest."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import update

from infra.kit.db import Transaction
from infra.kit.errors import AlcoveError
from spawner import queue, states, storage, wire
from spawner.drive import Drivers
from spawner.instances import Row, obtain, read
from spawner.journal import Journal
from spawner.models import instance
from spawner.plans import Plans
from spawner.queue import StartRules
from spawner.reconcile import Reconcile

_STOPPABLE: tuple[wire.State, ...] = ("creating", "starting", "ready")


@dataclass(frozen=True, slots=True)
class Ensure:
    """The use cases behind the API and the jobs."""

    journal: Journal
    drivers: Drivers
    reconcile: Reconcile
    plans: Plans
    rules: StartRules
    nudge: Callable[[], None]
    stop_timeout_s: float

    async def awake(self, tenant: str, reason: str) -> Row:
        """Wants a running instance. Joins a start under way; waits in the queue while one stops, while
        all places are taken, or while a failure's back-off lasts.

        Raises `forbidden` when suspended or past its storage (reason `storage_full`), `unavailable`
        (reason `starts_paused`) while no start begins at all; the wish is kept then, and is served when
        starting goes on.
        """
        row = await self._want(tenant, reason)
        if row.state == "ready" and not await self.reconcile.answers(row):
            # Asked about an instance that has just died: look now, so that the caller is not sent
            # back to it, and want it once more.
            await self.reconcile.look(tenant)
            row = await self._want(tenant, reason)
        return row

    async def asleep(self, tenant: str, message: str | None = None) -> Row:
        """Wants no instance: stops it, cancels a start under way, leaves the queue. Idempotent."""
        async with self.journal.transaction(tenant) as tx:
            row = await self._let_go(tx, await obtain(tx, tenant), message)
        self._carry_out(row)
        return row

    async def suspend(self, tenant: str) -> Row:
        """Refuses starts from now on, and stops what runs."""
        async with self.journal.transaction(tenant) as tx:
            row = await obtain(tx, tenant)
            await _set(tx, tenant, suspended=True)
            row = await self._let_go(tx, row, "The account is suspended")
        self._carry_out(row)
        return row

    async def resume(self, tenant: str) -> Row:
        """Allows starts again; starts nothing."""
        async with self.journal.transaction(tenant) as tx:
            await obtain(tx, tenant)
            await _set(tx, tenant, suspended=False)
            return await obtain(tx, tenant)

    async def set_plan(self, tenant: str, plan: str) -> Row:
        """Limits for the next start. Raises `invalid` (reason `unknown_plan`)."""
        self.plans.require(plan)
        async with self.journal.transaction(tenant) as tx:
            await obtain(tx, tenant)
            await _set(tx, tenant, plan=plan)
            return await obtain(tx, tenant)

    async def clear(self, tenant: str) -> Row:
        """Lets the tenant be awake past its storage for a quarter of an hour, for its owner to delete; wakes
        nothing. Without effect where there is room. Raises `forbidden` (reason `storage_past_ceiling`)."""
        async with self.journal.transaction(tenant) as tx:
            row, now_at = await obtain(tx, tenant), await tx.now_at()
            storage.must_be_clearable(row, self.plans)
            if storage.refusal(row, self.plans, now_at) is None:
                return row
            await _set(tx, tenant, clearing_until_at=now_at + storage.CLEARING_MS)
            return await obtain(tx, tenant)

    async def person_was_here(self, tenant: str, person_at: int) -> None:
        """Notes a person's last byte; what is older than the last news, or in the future, moves nothing
        beyond the present. A tenant never started is no news."""
        async with self.journal.transaction() as tx:
            row = await read(tx, tenant)
            moment = min(person_at, await tx.now_at())
            if row is not None and moment > (row.person_at or 0):
                await _set(tx, tenant, person_at=moment)

    async def _want(self, tenant: str, reason: str) -> Row:
        async with self.rules.taking, self.journal.transaction(tenant) as tx:
            row = await obtain(tx, tenant)
            if row.suspended:
                raise AlcoveError(
                    "forbidden", "the account is suspended: it starts nothing", reason="suspended"
                )
            if row.state in _STOPPABLE:
                return row
            if (full := storage.refusal(row, self.plans, await tx.now_at())) is not None:
                raise full
            newly = row.wanted_at is None
            await queue.want(tx, row, reason)
            begun = await queue.take(tx, self.rules)
            if newly:
                await queue.tell_waiting(tx, tenant, self.rules)
            row = await obtain(tx, tenant)
        for other in begun:
            self.journal.ring(other.tenant)
            self.drivers.kick(other.tenant)
        self.nudge()
        refusal = self.rules.breaker.refusal()
        if refusal is not None and row.wanted_at is not None:
            raise refusal
        return row

    async def _let_go(self, tx: Transaction, row: Row, message: str | None) -> Row:
        await queue.unwant(tx, row.tenant)
        if row.state in _STOPPABLE:
            row = await states.to_stopping(tx, row, timeout_s=self.stop_timeout_s, message=message)
        elif row.wanted_at is not None and row.state != "stopping":
            row = await states.tell(tx, row, "failed" if row.state == "failed" else "stopped")
        now = await read(tx, row.tenant)
        assert now is not None
        return now

    def _carry_out(self, row: Row) -> None:
        if row.state == "stopping":
            self.drivers.interrupt(row.tenant)


async def _set(tx: Transaction, tenant: str, **values: object) -> None:
    await tx.execute(update(instance).where(instance.c.tenant == tenant).values(values))
