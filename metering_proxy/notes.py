"""What the meter noted for an operator to find: a key at a stranger's door, limits set by hand. Written where it
happens (keys.py, tenants.py), listed here."""

from sqlalchemy import select

from infra.kit.db import Database
from metering_proxy import wire
from metering_proxy.models import audit


class Notes:
    """Reads them for the control listener."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def listed(self, tenant: str | None, before: str | None, limit: int) -> wire.Notes:
        """The newest first, of one tenant or of all, from behind the row `before` on. Ids are in time's order."""
        wanted = select(audit).order_by(audit.c.id.desc()).limit(limit + 1)
        if tenant is not None:
            wanted = wanted.where(audit.c.tenant == tenant)
        if before is not None:
            wanted = wanted.where(audit.c.id < before)
        async with self._db.read() as reading:
            rows = await reading.rows(wanted)
        shown = [wire.Note(**row) for row in rows[:limit]]
        return wire.Notes(rows=shown, next=shown[-1].id if len(rows) > limit else None)
