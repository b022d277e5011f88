"""Marks of limits: set where a limit has come down on what was used before, told of once, listed for admins.

Those that a call passes are set as it is settled (ledger/moves.py); what one tenant sees is quotas.py's.
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, and_, select, true, update

from infra.kit.clock import Clock
from infra.kit.db import Database, sql
from metering_proxy import wire
from metering_proxy.ledger import moves
from metering_proxy.ledger.tx import Mark, insert_into
from metering_proxy.models import account_window, mark
from metering_proxy.plans import NO_LIMIT
from metering_proxy.telemetry import Telemetry
from metering_proxy.tenants import Tenants

_log = logging.getLogger(__name__)
# No window is longer than a month, wherever its zone puts its beginning.
_LONGEST_MS = 33 * 86_400_000
_KEY = (mark.c.account, mark.c.kind, mark.c.start_at, mark.c.percent)
_SET = sql(insert_into(mark) + " ON CONFLICT DO NOTHING")


class Marks:
    """Every tenant's marks."""

    def __init__(self, db: Database, tenants: Tenants, telemetry: Telemetry, clock: Clock) -> None:
        self._db, self._tenants = db, tenants
        self._telemetry, self._clock = telemetry, clock
        self._looked = False  # plans may be others than when this meter ran last

    async def look(self, tenants: Collection[str] | None = None) -> None:
        """Sets the marks that the use of these tenants (None: of all) has reached by the limits in force, and that
        no call has set: what to do where limits may have come down. Each is set once a window, whoever looks."""
        now_at = self._clock.now_at()
        recent = now_at - _LONGEST_MS
        used = select(account_window).where(
            account_window.c.start_at > recent,
            account_window.c.spent > 0,
            account_window.c.kind.not_like("%minute"),
            _of(account_window.c.account, tenants),
        )
        there = select(*_KEY).where(mark.c.start_at > recent, _of(mark.c.account, tenants))
        async with self._db.read() as reading:
            windows = await reading.rows(used)
            known: set[Any] = {tuple(row.values()) for row in await reading.rows(there)}
        missing = [found for row in windows for found in self._reached(row, now_at)
                   if found not in known]  # fmt: skip
        if not missing:
            return
        async with self._db.transaction() as tx:
            at = await tx.now_at()
            for found in missing:
                named = dict(zip((column.name for column in _KEY), found, strict=True))
                await tx.execute(_SET, {**named, "at": at, "told_at": None})

    def _reached(self, window: RowMapping, now_at: int) -> Iterator[Mark]:
        for percent in self._passed(window, now_at):
            yield window["account"], window["kind"], window["start_at"], percent

    def _passed(self, window: RowMapping, now_at: int) -> list[int]:
        """The marks that a window's use has reached by the limit of now; none where it is not what counts now."""
        limit = self._limit(window["account"], window["kind"], window["start_at"], now_at)
        return [] if limit is None or limit >= NO_LIMIT else moves.passed(window["spent"], limit)

    async def tell(self) -> None:
        """Looks at those whose limits may be others by now, then counts and logs the marks that nobody has told of
        yet; each once, however many processes look."""
        other = self._tenants.ended_overrides() if self._looked else None
        if other is None or other:
            await self.look(other)
        self._looked = True
        untold = mark.c.told_at.is_(None)
        told = []
        async with self._db.transaction() as tx:
            for row in await tx.rows(select(mark).where(untold).order_by(mark.c.at).limit(500)):
                mine = [mark.c[column.name] == row[column.name] for column in mark.primary_key]
                telling = update(mark).where(untold, *mine).values(told_at=await tx.now_at())
                if await tx.execute(telling):
                    told.append(row)
        for row in told:
            self._telemetry.marks.labels(row["kind"], str(row["percent"])).inc()
            passed = {"tenant": row["account"], "limit": row["kind"], "percent": row["percent"]}
            _log.info("limit mark", extra=passed)

    async def listed(self, least: int) -> wire.TenantMarks:
        """Each tenant's highest mark of `least` percent or more in the windows that run, by tenant."""
        now_at = self._clock.now_at()
        its = [mark.c[name] == account_window.c[name] for name in ("account", "kind", "start_at")]
        passed = (
            select(mark, account_window.c.spent)
            .join(account_window, and_(*its))
            .where(mark.c.percent >= least, mark.c.start_at > now_at - _LONGEST_MS)
        )
        async with self._db.read() as reading:
            rows = await reading.rows(passed.order_by(mark.c.account, mark.c.percent))
        return wire.TenantMarks(marks=self._highest(rows, now_at))

    def _highest(self, rows: Sequence[RowMapping], now_at: int) -> list[wire.TenantMark]:
        found: dict[str, wire.TenantMark] = {}
        for row in rows:
            if row["percent"] in self._passed(row, now_at):
                found[row["account"]] = wire.TenantMark(
                    tenant=row["account"],
                    kind=row["kind"],
                    starts_at=row["start_at"],
                    percent=row["percent"],
                    at=row["at"],
                )
        return list(found.values())

    def _limit(self, tenant: str, kind: str, start_at: int, now_at: int) -> int | None:
        """The limit of a window that counts now, under the plan of now; None for another window."""
        standing = self._tenants.standing(tenant)
        limit = next((each for each in standing.limits() if each.kind == kind), None)
        if limit is None or standing.spans.span(limit.period, now_at)[0] != start_at:
            return None
        return limit.limit


def _of(column: ColumnElement[Any], tenants: Collection[str] | None) -> ColumnElement[bool]:
    return true() if tenants is None else column.in_(tenants)
