"""Phase events: appended inside the transaction that moves an instance, read again by number.

The numbers count per tenant without holes; a stream is the past read from the database, then a bell.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import delete, insert, select

from infra.kit.db import Database, Transaction
from spawner import wire
from spawner.instances import Row, read
from spawner.models import phase_event

KEPT = 200  # newest events of a tenant; what is older is history nobody resumes from


class Journal:
    """The spawner's transactions, and the streams that tell of them."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._bells: dict[str, set[asyncio.Event]] = defaultdict(set)

    @asynccontextmanager
    async def transaction(self, *tenants: str) -> AsyncIterator[Transaction]:
        """A transaction; once it is committed, whoever follows one of `tenants` looks again."""
        async with self._db.transaction() as tx:
            yield tx
        for tenant in tenants:
            self.ring(tenant)

    def ring(self, tenant: str) -> None:
        """Wakes the streams of `tenant`."""
        for bell in self._bells.get(tenant, ()):
            bell.set()

    def followers(self, tenant: str) -> int:
        """How many streams follow `tenant` now."""
        return len(self._bells.get(tenant, ()))

    async def after(self, tenant: str, seq: int) -> list[wire.PhaseEvent]:
        """Kept events after number `seq`, in order."""
        events = phase_event.c
        async with self._db.read() as reading:
            found = await reading.rows(
                select(phase_event)
                .where(events.tenant == tenant, events.seq > seq)
                .order_by(events.seq)
            )
        return [
            wire.PhaseEvent(
                error=wire.Problem(code=one["error_code"], message=one["error_message"] or "")
                if one["error_code"]
                else None,
                **{name: one[name] for name in _PLAIN},
            )
            for one in found
        ]

    async def follow(
        self, tenant: str, after: int, *, heartbeat_s: float
    ) -> AsyncIterator[wire.PhaseEvent | None]:
        """Events after number `after`, past and to come, each once; None after `heartbeat_s` of silence.

        A number that was never given out (of a database that was restored) counts as the newest.
        """
        async with self._db.read() as reading:
            row = await read(reading, tenant)
        seen = min(after, row.seq if row else 0)
        bell = asyncio.Event()
        self._bells[tenant].add(bell)
        try:
            while True:
                bell.clear()
                for event in await self.after(tenant, seen):
                    seen = event.seq
                    yield event
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(heartbeat_s):
                        await bell.wait()
                if not bell.is_set():
                    yield None
        finally:
            self._bells[tenant].discard(bell)
            if not self._bells[tenant]:
                del self._bells[tenant]


_PLAIN = ("seq", "at", "generation", "state", "phase", "message", "typical_ms")


async def append(
    tx: Transaction, row: Row, *, at: int, message: str, typical_ms: int | None
) -> None:
    """Writes the event of `row`, which already carries the event's number, state and phase."""
    failed = row.phase == "failed"
    await tx.execute(
        insert(phase_event).values(
            tenant=row.tenant,
            seq=row.seq,
            at=at,
            generation=row.generation,
            state=row.state,
            phase=row.phase,
            message=message,
            typical_ms=typical_ms,
            error_code=row.error_code if failed else None,
            error_message=row.error_message if failed else None,
        )
    )
    if row.phase == "key":  # a start is the moment to forget the oldest
        await tx.execute(
            delete(phase_event).where(
                phase_event.c.tenant == row.tenant, phase_event.c.seq <= row.seq - KEPT
            )
        )
