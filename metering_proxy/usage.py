"""Reports from the ledger: usage by day, model, tenant, provider or payer, and tenants by what they spent.

Days are those of the zone that was asked for; their bounds are computed here and joined in SQL. Totals come
from SQL over the whole filter.
"""

from collections.abc import Sequence
from datetime import tzinfo
from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    Select,
    and_,
    bindparam,
    case,
    column,
    func,
    literal_column,
    select,
    union,
    values,
)
from sqlalchemy import BigInteger as Big
from sqlalchemy import String as Text

from infra.kit.clock import Clock
from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from metering_proxy import wire
from metering_proxy.ledger import windows
from metering_proxy.ledger.ops import NOT_SENT
from metering_proxy.models import account_window, entry, tenant
from metering_proxy.tenants import Tenants

GROUPS = ("day", "model", "tenant", "provider", "payer")
_MOST_DAYS = 400
_LATEST_AT = 2**47  # in the year 6429: the calendar that days are found in has an end
_COLUMNS = {
    "model": entry.c.model,
    "tenant": entry.c.account,
    "provider": entry.c.provider,
    "payer": entry.c.payer,
}


def _sums() -> list[ColumnElement[Any]]:
    summed = [
        func.coalesce(func.sum(entry.c[name]), 0).label(name)
        for name in (
            "input_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
            "output_tokens",
            "cost_nanos",
            "charge_nanos",
        )
    ]
    usage = _is_request()
    requests = func.coalesce(func.sum(case((usage, 1), else_=0)), 0).label("requests")
    estimated = func.coalesce(func.sum(case((usage, entry.c.estimated), else_=0)), 0)
    return [requests, *summed, estimated.label("estimated")]


def _is_request() -> ColumnElement[bool]:
    """What was never sent is an entry, so that it can be found, but no request to any model."""
    return and_(entry.c.kind == "usage", entry.c.outcome != NOT_SENT)


class Reports:
    """Reads the ledger for the control listener."""

    def __init__(self, db: Database, tenants: Tenants, clock: Clock) -> None:
        self._db, self._tenants, self._clock = db, tenants, clock

    async def usage(
        self, *, account: str | None, from_at: int, to_at: int, zone: str, group: Sequence[str]
    ) -> wire.Usage:
        """Sums of requests that began in [from_at, to_at). Raises `invalid` (zone, group, period)."""
        if unknown := set(group) - set(GROUPS):
            raise AlcoveError(
                "invalid", f"cannot group by {', '.join(sorted(unknown))}", reason="group"
            )
        tz = windows.zone(zone)
        filters = [entry.c.started_at >= from_at, entry.c.started_at < to_at]
        if account is not None:
            filters.append(entry.c.account == account)
        async with self._db.read() as reading:
            totals = await reading.row(select(*_sums()).where(*filters))
            rows = await reading.rows(_grouped(group, filters, from_at, to_at, tz))
        assert totals is not None
        return wire.Usage(
            zone=zone,
            rows=[wire.UsageRow.model_validate(_ints(dict(row))) for row in rows],
            totals=wire.Sums.model_validate(_ints(dict(totals))),
        )

    async def tenants(self, query: wire.TenantsQuery) -> wire.TenantsPage:
        """A page of tenants by spend, today and this month in the query's zone. Raises `invalid` (zone)."""
        tz = windows.zone(query.zone)
        now_at = self._clock.now_at()
        month = windows.span("month", now_at, tz)[0]
        today = windows.span("day", now_at, tz)[0]
        async with self._db.read() as reading:
            spend = _spend(_asked(query.ids), month, today).subquery()
            chosen = spend.c[f"{query.sort}_nanos"]
            ordered = chosen.desc() if query.order == "desc" else chosen.asc()
            page = select(spend).order_by(ordered, spend.c.tenant)
            rows = await reading.rows(page.offset(query.offset).limit(query.limit))
            names = ("charge_today_nanos", "charge_month_nanos", "requests_month")
            sums = [func.coalesce(func.sum(spend.c[name]), 0).label(name) for name in names]
            totals = await reading.row(
                select(func.count().label("total"), *sums).select_from(spend)
            )
        assert totals is not None
        told = _ints(dict(totals))
        return wire.TenantsPage(
            rows=[self._spend_row(_ints(dict(row))) for row in rows],
            total=told.pop("total"),
            totals=wire.SpendTotals.model_validate(told),
        )

    def _spend_row(self, row: dict[str, Any]) -> wire.TenantSpend:
        limit = self._tenants.standing(row["tenant"]).limit("charge_month")
        return wire.TenantSpend(quota_limit_nanos=limit, **row)


def _grouped(
    group: Sequence[str],
    filters: Sequence[ColumnElement[bool]],
    from_at: int,
    to_at: int,
    tz: tzinfo,
) -> Select[Any]:
    chosen: list[ColumnElement[Any]] = [
        _COLUMNS[name].label(name) for name in group if name in _COLUMNS
    ]
    if "day" not in group:
        return select(*chosen, *_sums()).where(*filters).group_by(*chosen).order_by(*chosen)
    days = _days(from_at, to_at, tz)
    chosen.insert(0, days.c.day.label("day"))
    within = and_(entry.c.started_at >= days.c.from_at, entry.c.started_at < days.c.to_at)
    return (
        select(*chosen, *_sums())
        .select_from(entry.join(days, within))
        .where(*filters)
        .group_by(*chosen)
        .order_by(*chosen)
    )


def _days(from_at: int, to_at: int, tz: tzinfo) -> CTE:
    if not 0 <= from_at < to_at <= min(_LATEST_AT, from_at + _MOST_DAYS * 86_400_000):
        raise AlcoveError(
            "invalid",
            f"a period has a beginning, an end, and at most {_MOST_DAYS} days",
            reason="period",
        )
    rows = windows.days(from_at, to_at, tz)
    shape = values(column("day", Text), column("from_at", Big), column("to_at", Big), name="days")
    return shape.data(rows).cte("days")


def _asked(given: list[str] | None) -> Select[Any]:
    """The tenants of a query: those given, or all that the meter has heard of or seen."""
    if given is None:
        heard = select(tenant.c.tenant.label("tenant"))
        seen = select(account_window.c.account.label("tenant"))
        return select(union(heard, seen).subquery().c.tenant)
    if not given:
        return select(literal_column("''").label("tenant")).where(literal_column("1 = 0"))
    rows = values(column("tenant", Text), name="asked").data(
        [(item,) for item in dict.fromkeys(given)]
    )
    return select(rows.cte("asked").c.tenant)


def _spend(asked: Select[Any], month: int, today: int) -> Select[Any]:
    who = asked.subquery("who")
    since_today = entry.c.started_at >= bindparam("today", today, Big)
    charged_today = case((since_today, entry.c.charge_nanos), else_=0)
    mine = and_(
        entry.c.account == who.c.tenant,
        entry.c.started_at >= bindparam("month", min(month, today), Big),
    )
    return (
        select(
            who.c.tenant,
            func.coalesce(func.sum(charged_today), 0).label("charge_today_nanos"),
            func.coalesce(func.sum(entry.c.charge_nanos), 0).label("charge_month_nanos"),
            func.count(case((_is_request(), 1))).label("requests_month"),
        )
        .select_from(who.outerjoin(entry, mine))
        .group_by(who.c.tenant)
    )


def _ints(row: dict[str, Any]) -> dict[str, Any]:
    """PostgreSQL sums BIGINT as NUMERIC: whole numbers again."""
    return {
        name: value if value is None or isinstance(value, str) else int(value)
        for name, value in row.items()
    }
