"""What a tenant may still do: its limits with their windows, its grants, and the marks that its use has passed.
How marks come about and who is told of them: marks.py."""

from typing import Any

from sqlalchemy import RowMapping, Select, and_, func, literal_column, or_, select

from infra.kit.clock import Clock
from infra.kit.db import Database, Reading
from metering_proxy import grants, wire
from metering_proxy.ledger import moves
from metering_proxy.models import account_window, credit_grant, entry, mark, reservation
from metering_proxy.plans import NO_LIMIT, Limit
from metering_proxy.tenants import Standing, Tenants

_MOST_MARKS = 200


class Quotas:
    """Reads limits for the control listener."""

    def __init__(self, db: Database, tenants: Tenants, clock: Clock) -> None:
        self._db, self._tenants, self._clock = db, tenants, clock

    async def quota(self, account: str) -> wire.Quota:
        """What a tenant may still do now."""
        standing, now_at = self._tenants.standing(account), self._clock.now_at()
        today, _ = standing.spans.span("day", now_at)
        async with self._db.read() as reading:
            limits = await _limits(reading, account, standing, now_at)
            concurrent = await reading.value(_running(account, await reading.now_at()))
            tokens = await reading.value(_tokens_since(account, today))
            credit = await reading.value(_credit(account, await reading.now_at()))
            marks = await _marks(reading, account, limits)
        by_kind = {limit.kind: limit for limit in limits}
        month, minute = by_kind["charge_month"], by_kind["requests_minute"]
        return wire.Quota(
            plan=standing.plan.name,
            status=standing.status,
            charge_month=wire.MoneyWindow(
                limit_nanos=month.limit,
                spent_nanos=month.spent,
                held_nanos=month.held,
                resets_at=month.resets_at,
            ),
            requests_minute=wire.CountWindow(limit=minute.limit, used=minute.spent + minute.held),
            concurrent=wire.CountWindow(limit=standing.concurrent, used=concurrent),
            tokens_today=int(tokens or 0),
            limits=[limit for limit in limits if limit.limit is not None],
            credit_nanos=int(credit or 0),
            marks=marks,
        )

    async def marks(self, account: str) -> wire.Marks:
        """The newest marks of a tenant."""
        newest = select(mark).where(mark.c.account == account).order_by(mark.c.at.desc())
        async with self._db.read() as reading:
            rows = await reading.rows(newest.limit(_MOST_MARKS))
        return wire.Marks(marks=[_mark(row) for row in rows])


async def _limits(
    reading: Reading, account: str, standing: Standing, now_at: int
) -> list[wire.LimitState]:
    limits = {limit.kind: limit for limit in standing.limits()}
    limits.setdefault("requests_minute", Limit("requests", "minute", NO_LIMIT))
    spans = {kind: standing.spans.span(limit.period, now_at) for kind, limit in limits.items()}
    wanted = or_(
        *(
            and_(account_window.c.kind == kind, account_window.c.start_at == span[0])
            for kind, span in spans.items()
        )
    )
    rows = await reading.rows(
        select(account_window).where(account_window.c.account == account, wanted)
    )
    used = {row["kind"]: (row["spent"], row["held"]) for row in rows}
    found = []
    for kind, limit in limits.items():
        spent, held = used.get(kind, (0, 0))
        found.append(
            wire.LimitState(
                kind=kind,
                limit=None if limit.limit == NO_LIMIT else limit.limit,
                spent=spent,
                held=held,
                starts_at=spans[kind][0],
                resets_at=spans[kind][1],
            )
        )
    return found


async def _marks(reading: Reading, account: str, limits: list[wire.LimitState]) -> list[wire.Mark]:
    """The marks that use has passed of the limits as they are now: one may have been raised since."""
    rows = await reading.rows(
        select(mark).where(
            mark.c.account == account, mark.c.start_at.in_({one.starts_at for one in limits})
        )
    )
    now = {(limit.kind, limit.starts_at): limit for limit in limits}
    found = []
    for row in rows:
        limit = now.get((row["kind"], row["start_at"]))
        if limit is None or limit.limit is None:
            continue
        if row["percent"] in moves.passed(limit.spent, limit.limit):
            found.append(_mark(row))
    return sorted(found, key=lambda one: (one.kind, one.percent))


def _mark(row: RowMapping) -> wire.Mark:
    return wire.Mark(
        kind=row["kind"], starts_at=row["start_at"], percent=row["percent"], at=row["at"]
    )


def _credit(account: str, now_at: int) -> Select[Any]:
    left = credit_grant.c.amount_nanos - credit_grant.c.spent_nanos - credit_grant.c.held_nanos
    return select(func.sum(left)).where(*grants.live(account, now_at))


def _running(account: str, now_at: int) -> Select[Any]:
    mine = (reservation.c.account == account, reservation.c.state == literal_column("'dispatched'"))
    leased = reservation.c.lease_until_at > now_at
    return select(func.count()).select_from(reservation).where(*mine, leased)


def _tokens_since(account: str, at: int) -> Select[Any]:
    tokens = (
        entry.c.input_tokens
        + entry.c.cache_read_tokens
        + entry.c.cache_write_tokens
        + entry.c.output_tokens
    )
    return select(func.sum(tokens)).where(entry.c.account == account, entry.c.started_at >= at)
