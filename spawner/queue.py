"""Starts that wait for a free place: first come, first served, so many at once and no more.

The queue is the rows with `wanted_at`; it outlives the process. A tenant whose last start failed waits
until its back-off is over and holds nobody up meanwhile.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import func, or_, select, update

from infra.kit.db import Reading, Transaction
from spawner import states
from spawner.breaker import Breaker
from spawner.instances import AT_REST, Row, read
from spawner.journal import Journal
from spawner.models import instance

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StartRules:
    """Under what rules starts begin."""

    runtime: str
    at_once: int
    timeout_s: float
    breaker: Breaker
    # Held around a transaction that takes places: two at once would both count the same free ones.
    taking: asyncio.Lock = field(default_factory=asyncio.Lock)


async def want(tx: Transaction, row: Row, reason: str) -> None:
    """Puts a start at the end of the queue; a second wish for the same tenant changes nothing."""
    if row.wanted_at is None:
        await tx.execute(
            update(instance)
            .where(instance.c.tenant == row.tenant)
            .values(wanted_at=await tx.now_at(), wanted_reason=reason)
        )


async def unwant(tx: Transaction, tenant: str) -> None:
    """Takes the tenant's start out of the queue."""
    await tx.execute(
        update(instance)
        .where(instance.c.tenant == tenant)
        .values(wanted_at=None, wanted_reason=None)
    )


async def take(tx: Transaction, rules: StartRules) -> list[Row]:
    """Begins as many waiting starts as there are free places; gives their rows, now `creating`.

    The caller holds `rules.taking`.
    """
    starting = await tx.value(
        select(func.count()).where(instance.c.state.in_(("creating", "starting")))
    )
    free = rules.breaker.places(rules.at_once - int(starting), under_way=int(starting))
    if free <= 0:
        return []
    now_at = await tx.now_at()
    found = await tx.rows(
        select(instance)
        .where(
            instance.c.wanted_at.is_not(None),
            instance.c.state.in_(AT_REST),
            instance.c.suspended.is_(False),
            or_(instance.c.retry_at.is_(None), instance.c.retry_at <= now_at),
        )
        .order_by(instance.c.wanted_at, instance.c.tenant)
        .limit(free)
        .with_for_update(skip_locked=True)
    )
    return [
        await states.to_creating(tx, Row.of(one), runtime=rules.runtime, timeout_s=rules.timeout_s)
        for one in found
    ]


async def tell_waiting(tx: Transaction, tenant: str, rules: StartRules) -> None:
    """Tells a tenant that its start waits, and for what. Nothing where it has begun or is stopping."""
    row = await read(tx, tenant)
    if row is None or row.wanted_at is None or row.state not in AT_REST:
        return
    now_at = await tx.now_at()
    if (refusal := rules.breaker.refusal()) is not None:
        message = refusal.message
    elif row.retry_at is not None and row.retry_at > now_at:
        seconds = (row.retry_at - now_at + 999) // 1000
        message = f"It failed {row.failures} times in a row; the next try is in {seconds} s"
    else:
        query = select(func.count()).where(
            instance.c.wanted_at < row.wanted_at, instance.c.state.in_(AT_REST)
        )
        before = int(await tx.value(query))
        message = f"{states.SAYS['queued']}: {before} before you"
    await states.tell(tx, row, "queued", message)


async def next_retry_at(reading: Reading) -> int | None:
    """When the first waiting start comes out of its back-off."""
    query = select(func.min(instance.c.retry_at)).where(
        instance.c.wanted_at.is_not(None), instance.c.state.in_(AT_REST)
    )
    found = await reading.value(query)
    return int(found) if found is not None else None


class Queue:
    """Begins waiting starts whenever a place comes free or a back-off ends."""

    def __init__(self, journal: Journal, rules: StartRules, begun: Callable[[str], None]) -> None:
        self._journal, self._rules, self._begun = journal, rules, begun
        self._nudged = asyncio.Event()

    def nudge(self) -> None:
        """Says that something changed: a place came free, or a start is wanted."""
        self._nudged.set()

    async def run(self) -> None:
        """Serves the queue until it is cancelled."""
        while True:
            self._nudged.clear()
            wait_s = 5.0
            try:
                wait_s = await self._serve()
            except states.Moved:
                continue
            except Exception:
                log.exception("the queue of starts could not be served")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._nudged.wait()

    async def _serve(self) -> float:
        async with self._rules.taking, self._journal.transaction() as tx:
            begun = await take(tx, self._rules)
            retry_at = await next_retry_at(tx)
            now_at = await tx.now_at()
        for row in begun:
            self._journal.ring(row.tenant)
            self._begun(row.tenant)
        return 5.0 if retry_at is None else min(5.0, max(0.01, (retry_at - now_at) / 1000))
