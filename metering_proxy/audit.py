"""The audit: what happened at the meter that an operator may have to find again: a key at a stranger's door,
limits set by hand. Rows are only ever added."""

from typing import Literal

from sqlalchemy import insert, select

from infra.kit import ids
from infra.kit.db import Database, Transaction
from metering_proxy import wire
from metering_proxy.models import audit as table

What = Literal["stranger_key", "quota_override"]


async def record(tx: Transaction, *, at: int, tenant: str, what: What, detail: str) -> None:
    """Adds a row about a tenant. `detail`: text or JSON."""
    row = {"id": ids.ulid(), "at": at, "tenant": tenant, "what": what, "detail": detail}
    await tx.execute(insert(table).values(row))


class Audit:
    """Reads the rows for the control listener."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def listed(self, tenant: str | None, before: str | None, limit: int) -> wire.AuditPage:
        """The newest first, of one tenant or of all, from behind the row `before` on. Ids are in time's order."""
        wanted = select(table).order_by(table.c.id.desc()).limit(limit + 1)
        if tenant is not None:
            wanted = wanted.where(table.c.tenant == tenant)
        if before is not None:
            wanted = wanted.where(table.c.id < before)
        async with self._db.read() as reading:
            rows = await reading.rows(wanted)
        shown = [wire.AuditRow(**row) for row in rows[:limit]]
        return wire.AuditPage(rows=shown, next=shown[-1].id if len(rows) > limit else None)
