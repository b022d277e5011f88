"""The admin's list of tenants, across three rooms.

The room that owns the sort column leads: it takes the ids that the others' filters left, answers
one page of them with the total, and the other rooms fill in. Tenants are the gateway's, instances
the spawner's, money the meter's. Totals are SQL sums over the whole filter, in one time zone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.engine import RowMapping

from gateway.accounts import addresses
from gateway.models import account, tenant
from infra.kit.db import Database, Reading
from infra.kit.errors import AlcoveError
from infra.kit.ids import is_tenant_id
from metering_proxy import wire as meter_wire
from metering_proxy.client import MeterClient
from spawner import wire as spawner_wire
from spawner.client import SpawnerClient

Sort = Literal[
    "email", "plan", "status", "state", "charge_today", "charge_month", "last_seen", "created"
]
Order = Literal["asc", "desc"]
_STATES: dict[str, tuple[spawner_wire.State, ...]] = {
    "ready": ("ready",),
    "starting": ("creating", "starting"),
    "stopped": ("stopping", "stopped"),
    "failed": ("failed",),
    "absent": ("absent",),
}
MARKS = ("50", "80", "95")
_ALL_AT_ONCE = 1000
_PAGE = re.compile(r"[1-9][0-9]{0,5}")
_COLUMNS: dict[str, ColumnElement[Any]] = {
    "email": account.c.email_key,
    "plan": tenant.c.plan,
    "status": tenant.c.status,
    "last_seen": func.coalesce(tenant.c.last_seen_at, 0),
    "created": tenant.c.created_at,
}
_METER = "The meter does not answer just now: no money is shown."
_SPAWNER = "The spawner does not answer just now: the state of assistants is not known."


@dataclass(frozen=True, slots=True)
class Query:
    """What the admin asks for."""

    q: str = ""
    plan: str = ""
    status: str = ""
    state: str = ""
    mark: str = ""
    sort: Sort = "created"
    order: Order = "desc"
    page: int = 1
    size: int = 25
    zone: str = "UTC"

    @classmethod
    def parse(cls, given: dict[str, str], zone: str) -> "Query":
        """The query of a request; what is not known is left out rather than refused."""
        sort, order = given.get("sort", ""), given.get("order", "")
        page = given.get("page", "")
        return cls(
            q=given.get("q", "")[:200].strip(),
            plan=given.get("plan", "")[:32],
            status=given.get("status", "")[:16],
            state=given.get("state", "") if given.get("state", "") in _STATES else "",
            mark=given.get("mark", "") if given.get("mark", "") in MARKS else "",
            sort=sort if sort in get_args(Sort) else "created",  # type: ignore[arg-type]
            order="asc" if order == "asc" else "desc",
            page=int(page) if _PAGE.fullmatch(page) else 1,
            zone=zone,
        )


@dataclass
class Listing:
    """One page, its totals, and what could not be asked."""

    rows: list[dict[str, Any]]
    total: int
    totals: dict[str, int]
    problems: list[str] = field(default_factory=list)


class Directory:
    """Answers queries about all tenants. For admins only."""

    def __init__(self, db: Database, meter: MeterClient, spawner: SpawnerClient) -> None:
        self._db, self._meter, self._spawner = db, meter, spawner

    async def listing(self, query: Query) -> Listing:
        """One page. A room that does not answer leaves its columns empty and is named in `problems`."""
        problems: list[str] = []
        ids = await self._ours(query)
        everybody = not (query.q or query.plan or query.status or query.state or query.mark)
        if query.state:
            ids = await self._in_state(ids, query, problems)
        marks = await self._marks(problems)
        if query.mark:
            ids = [each for each in ids if marks.get(each, 0) >= int(query.mark)]
        shown = await self._page(query, ids, problems)
        rows = await self._fill(shown, query.zone, problems)
        for row in rows:
            row["mark"] = marks.get(row["tenant"])
        totals = await self._totals(None if everybody else ids, query.zone, problems)
        return Listing(rows, len(ids), totals, problems)

    async def emails(self, ids: Sequence[str]) -> dict[str, str]:
        """The addresses of tenants."""
        async with self._db.read() as reading:
            found = await reading.rows(
                select(tenant.c.id, account.c.email)
                .join(account, account.c.id == tenant.c.account_id)
                .where(tenant.c.id.in_(ids))
            )
        return {row["id"]: row["email"] for row in found}

    async def tenant_of(self, email: str) -> str | None:
        """The tenant of the account with that address."""
        mine = account.c.email_key == addresses.key(email)
        async with self._db.read() as reading:
            found: str | None = await reading.value(
                select(tenant.c.id).join(account, account.c.id == tenant.c.account_id).where(mine)
            )
        return found

    async def find(self, asked: str) -> str | None:
        """The tenant that an admin typed, by its id or by its account's address."""
        return asked if is_tenant_id(asked) else await self.tenant_of(asked)

    async def _ours(self, query: Query) -> list[str]:
        """Ids that the gateway's own filters leave, in its order where it leads."""
        where: list[ColumnElement[bool]] = []
        if query.q:
            where.append(account.c.email_key.contains(addresses.key(query.q), autoescape=True))
        if query.plan:
            where.append(tenant.c.plan == query.plan)
        if query.status:
            where.append(tenant.c.status == query.status)
        column = _COLUMNS.get(query.sort, tenant.c.created_at)
        ordered = column.asc() if query.order == "asc" else column.desc()
        async with self._db.read() as reading:
            rows = await reading.rows(
                select(tenant.c.id)
                .join(account, account.c.id == tenant.c.account_id)
                .where(and_(True, *where))
                .order_by(ordered, tenant.c.id)
            )
        return [row["id"] for row in rows]

    async def _in_state(self, ids: list[str], query: Query, problems: list[str]) -> list[str]:
        """Those of `ids` whose instance is in the state asked for, in the order that they came in."""
        found: set[str] = set()
        try:
            for state in _STATES[query.state]:
                found.update(await self._spawners(ids, state=state, order="asc"))
        except AlcoveError:
            _note(problems, _SPAWNER)
            return []
        return [each for each in ids if each in found]

    async def _marks(self, problems: list[str]) -> dict[str, int]:
        """The highest mark, in percent, of each tenant that has passed one in a window that runs."""
        try:
            return {mark.tenant: mark.percent for mark in await self._meter.all_marks()}
        except AlcoveError:
            _note(problems, _METER)
            return {}

    async def _page(self, query: Query, ids: list[str], problems: list[str]) -> list[str]:
        """The ids of the page, in the order of the room that owns the sort column."""
        first = (query.page - 1) * query.size
        try:
            if query.sort in ("charge_today", "charge_month"):
                page = await self._meter.query_tenants(
                    meter_wire.TenantsQuery(
                        ids=ids,
                        sort="charge_today" if query.sort == "charge_today" else "charge_month",
                        order=query.order,
                        offset=first,
                        limit=query.size,
                        zone=query.zone,
                    )
                )
                return [row.tenant for row in page.rows]
            if query.sort == "state":
                return await self._spawners(ids, order=query.order, offset=first, limit=query.size)
        except AlcoveError:
            _note(problems, _METER if query.sort.startswith("charge") else _SPAWNER)
        return ids[first : first + query.size]

    async def _spawners(
        self,
        ids: list[str],
        *,
        state: spawner_wire.State | None = None,
        order: Order = "asc",
        offset: int = 0,
        limit: int | None = None,
    ) -> list[str]:
        """Tenants of the spawner's answer, by state; all pages of it where no `limit` is given."""
        found: list[str] = []
        while True:
            page = await self._spawner.query(
                ids=ids,
                state=state,
                sort="state",
                order=order,
                offset=offset + len(found),
                limit=limit or _ALL_AT_ONCE,
            )
            found.extend(row.tenant for row in page.rows)
            if limit or not page.rows or offset + len(found) >= page.total:
                return found

    async def _fill(self, shown: list[str], zone: str, problems: list[str]) -> list[dict[str, Any]]:
        if not shown:
            return []
        async with self._db.read() as reading:
            ours = await _rows(reading, shown)
        states: dict[str, str] = {}
        try:
            page = await self._spawner.query(ids=shown, limit=len(shown))
            states = {row.tenant: row.state for row in page.rows}
        except AlcoveError:
            _note(problems, _SPAWNER)
        spend: dict[str, meter_wire.TenantSpend] = {}
        try:
            query = meter_wire.TenantsQuery(ids=shown, limit=len(shown), zone=zone)
            spend = {row.tenant: row for row in (await self._meter.query_tenants(query)).rows}
        except AlcoveError:
            _note(problems, _METER)
        return [
            _row(ours[each], states.get(each), spend.get(each)) for each in shown if each in ours
        ]

    async def _totals(
        self, ids: list[str] | None, zone: str, problems: list[str]
    ) -> dict[str, int]:
        try:
            query = meter_wire.TenantsQuery(ids=ids, limit=1, zone=zone)
            totals = (await self._meter.query_tenants(query)).totals
        except AlcoveError:
            _note(problems, _METER)
            return {"charge_today_nanos": 0, "charge_month_nanos": 0}
        return {
            "charge_today_nanos": totals.charge_today_nanos,
            "charge_month_nanos": totals.charge_month_nanos,
        }


async def _rows(reading: Reading, ids: Sequence[str]) -> dict[str, RowMapping]:
    rows = await reading.rows(
        select(*tenant.c["id", "plan", "status", "last_seen_at"], account.c.email)
        .join(account, account.c.id == tenant.c.account_id)
        .where(tenant.c.id.in_(ids))
    )
    return {row["id"]: row for row in rows}


def _row(
    ours: RowMapping, state: str | None, spend: meter_wire.TenantSpend | None
) -> dict[str, Any]:
    return {
        "tenant": ours["id"],
        "email": ours["email"],
        "plan": ours["plan"],
        "status": ours["status"],
        "state": state,
        "charge_today_nanos": spend.charge_today_nanos if spend else 0,
        "charge_month_nanos": spend.charge_month_nanos if spend else 0,
        "quota_limit_nanos": spend.quota_limit_nanos if spend else None,
        "last_seen_at": ours["last_seen_at"],
    }


def _note(problems: list[str], sentence: str) -> None:
    if sentence not in problems:
        problems.append(sentence)
