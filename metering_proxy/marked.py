"""Which tenants have passed marks of their limits in the windows that run. One tenant's are quotas.py's matter."""

from collections.abc import Sequence

from sqlalchemy import RowMapping, select

from infra.kit.clock import Clock
from infra.kit.db import Database
from metering_proxy import wire
from metering_proxy.ledger.windows import Period
from metering_proxy.models import mark
from metering_proxy.tenants import Tenants

# No window is longer than a month, wherever its zone puts its beginning.
_LONGEST_MS = 33 * 86_400_000


class Marked:
    """Looks over all tenants for admins."""

    def __init__(self, db: Database, tenants: Tenants, clock: Clock) -> None:
        self._db, self._tenants, self._clock = db, tenants, clock

    async def listed(self, least: int) -> wire.TenantMarks:
        """Each tenant's highest mark of `least` percent or more, by tenant."""
        now_at = self._clock.now_at()
        passed = select(mark).where(mark.c.percent >= least, mark.c.start_at > now_at - _LONGEST_MS)
        async with self._db.read() as reading:
            rows = await reading.rows(passed.order_by(mark.c.account, mark.c.percent))
        return wire.TenantMarks(marks=self._highest(rows, now_at))

    def _highest(self, rows: Sequence[RowMapping], now_at: int) -> list[wire.TenantMark]:
        found: dict[str, wire.TenantMark] = {}
        for row in rows:
            if self._runs(row["account"], row["kind"], row["start_at"], now_at):
                found[row["account"]] = wire.TenantMark(
                    tenant=row["account"],
                    kind=row["kind"],
                    starts_at=row["start_at"],
                    percent=row["percent"],
                    at=row["at"],
                )
        return list(found.values())

    def _runs(self, tenant: str, kind: str, start_at: int, now_at: int) -> bool:
        """Whether that window is the one that counts now, under the plan of now."""
        standing = self._tenants.standing(tenant)
        limit = next((each for each in standing.limits() if each.kind == kind), None)
        if limit is None:
            return False
        period: Period = limit.period
        return standing.spans.span(period, now_at)[0] == start_at
