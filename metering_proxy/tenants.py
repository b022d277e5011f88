"""What the gateway has decided about each tenant, kept in a row and in memory. Keys are keys.py's matter.

A tenant that the meter has not heard of is free and active, for calls with a valid key. Suspended and deleted are
rows that stay.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from sqlalchemy import RowMapping, insert, select, update

from infra.kit.clock import Clock
from infra.kit.db import Database, Transaction
from infra.kit.errors import AlcoveError
from infra.kit.value import value
from metering_proxy import audit, changes, wire
from metering_proxy.ledger.ops import Window
from metering_proxy.ledger.windows import Spans
from metering_proxy.models import tenant as table
from metering_proxy.plans import FREE, NO_LIMIT, Limit, Plan, Plans


@value
class Windows:
    """The windows of every limit of a tenant, as they are from one moment until another."""

    each: tuple[Window, ...]
    month_start_at: int
    from_at: int
    until_at: int


@dataclass(frozen=True, slots=True)
class Standing:
    """A tenant's plan and status. `overrides` replace limits of the plan by name, until `overridden_until_at`
    (None: for good); None: no limit.

    `spans`: where its windows begin and end. `egress`: whether it may send anonymous traffic out.
    """

    plan: Plan
    status: wire.Status
    spans: Spans
    version: int = -1
    overrides: Mapping[str, int | None] = field(default_factory=dict)
    egress: bool = False
    overridden_until_at: int | None = None
    # Not of init: a standing made from another by `replace` has other limits, so windows of its own.
    _windows: dict[bool, Windows] = field(
        init=False, default_factory=dict, compare=False, repr=False
    )

    def windows(self, at: int, *, charged: bool) -> Windows:
        """The windows that a call at `at` falls in; those of charge have no limit where nothing is `charged`."""
        found = self._windows.get(charged)
        if found is None or not found.from_at <= at < found.until_at:
            found = self._windows[charged] = self._windows_at(at, charged)
        return found

    def _windows_at(self, at: int, charged: bool) -> Windows:
        each: list[Window] = []
        for limit in self.limits():
            start_at, ends_at = self.spans.span(limit.period, at)
            most = limit.limit if charged or limit.measure != "charge" else NO_LIMIT
            each.append(Window(limit.kind, limit.measure, start_at, ends_at, most))
        return Windows(
            tuple(each),
            month_start_at=self.spans.span("month", at)[0],
            from_at=max(window.start_at for window in each),
            until_at=min(window.ends_at for window in each),
        )

    def limits(self) -> list[Limit]:
        """The limits in force. Charge of the month and what the plan limits are counted even where unlimited."""
        limits = dict(self.plan.limits)
        limits.setdefault("charge_month", Limit("charge", "month", NO_LIMIT))
        for kind, most in self.overrides.items():
            if kind in limits:
                limits[kind] = replace(limits[kind], limit=NO_LIMIT if most is None else most)
            elif most is not None and kind != "concurrent":
                limits[kind] = Limit.of(kind, most)
        return list(limits.values())

    @property
    def concurrent(self) -> int | None:
        """How many calls may run at once; None: any number."""
        return self.overrides.get("concurrent", self.plan.concurrent)

    def limit(self, kind: str) -> int | None:
        """One limit in force; None where there is none."""
        found = next((item.limit for item in self.limits() if item.kind == kind), NO_LIMIT)
        return None if found == NO_LIMIT else found

    def admit(self) -> None:
        """Raises `forbidden` (reason `suspended`, `deleted`) unless the tenant may call."""
        if self.status != "active":
            raise AlcoveError("forbidden", f"this account is {self.status}", reason=self.status)


class Tenants:
    """Every tenant's standing."""

    def __init__(self, db: Database, plans: Plans, clock: Clock) -> None:
        self._db, self._clock = db, clock
        self._known: dict[str, Standing] = {}
        self._ended_overrides: set[str] = set()
        self._in_turn = changes.InTurn(db)
        self._use(plans)

    @property
    def plans(self) -> Plans:
        """The plans in force."""
        return self._plans

    async def load(self, plans: Plans | None = None) -> None:
        """Reads every row anew, by other plans if given; calls under way keep what they began with."""
        async with self._in_turn.read() as reading:
            rows = await reading.rows(select(table))
            if plans is not None:
                self._use(plans)
            self._known = {row["tenant"]: self._standing(dict(row)) for row in rows}

    async def refresh(self, tenants: Collection[str]) -> None:
        """Reads these tenants' rows anew: something has changed them."""
        async with self._in_turn.read() as reading:
            rows = await reading.rows(select(table).where(table.c.tenant.in_(tenants)))
            self._known |= {row["tenant"]: self._standing(dict(row)) for row in rows}

    def _use(self, plans: Plans) -> None:
        free = plans.get(FREE)
        self._plans = plans
        self._unheard = Standing(free, "active", free.spans(0))

    def standing(self, tenant: str) -> Standing:
        """The tenant's standing; free and active where nothing was ever heard."""
        found = self._known.get(tenant, self._unheard)
        until_at = found.overridden_until_at
        if until_at is not None and until_at <= self._clock.now_at():
            found = replace(found, overrides={}, overridden_until_at=None)
            self._known[tenant] = found
            self._ended_overrides.add(tenant)
        return found

    def ended_overrides(self) -> set[str]:
        """The tenants whose overrides have ended since this was asked last: other limits hold for them."""
        for tenant in [name for name, one in self._known.items() if one.overridden_until_at]:
            self.standing(tenant)
        ended, self._ended_overrides = self._ended_overrides, set()
        return ended

    async def put(self, tenant: str, state: wire.TenantState) -> wire.Tenant:
        """Takes over a decision unless a later one is known; answers the row kept. Raises `invalid` (plan)."""
        self._plans.get(state.plan)
        values: dict[str, Any] = {
            "plan": state.plan,
            "status": state.status,
            "version": state.version,
            "quota": json.dumps(state.quota.model_dump(exclude_unset=True)),
            "egress": int(state.egress),
            "changed_at": self._clock.now_at(),
        }
        mine = table.c.tenant == tenant
        async with self._db.transaction() as tx:
            await tx.alone(f"tenant/{tenant}")
            kept = await tx.row(select(table).where(mine))
            if kept is None or kept["plan"] != state.plan:
                values["since_at"] = values["changed_at"]
            if kept is None:
                await tx.execute(insert(table).values(tenant=tenant, **values))
            else:
                newer = table.c.version < state.version
                await tx.execute(update(table).where(mine, newer).values(values))
            await self._audit(tx, tenant, kept, state)
            await changes.note(tx, "tenant", tenant)
            kept = await tx.row(select(table).where(mine))
        assert kept is not None
        row = dict(kept)
        await self.refresh([tenant])
        return wire.Tenant(
            tenant=tenant,
            plan=row["plan"],
            status=row["status"],
            version=row["version"],
            quota=wire.QuotaOverride.model_validate(json.loads(row["quota"])),
            egress=bool(row["egress"]),
        )

    async def _audit(
        self, tx: Transaction, tenant: str, before: RowMapping | None, state: wire.TenantState
    ) -> None:
        """Writes down a change of limits: who reads the books later asks why a month held so much."""
        if before is not None and before["version"] >= state.version:
            return
        was = {} if before is None else json.loads(before["quota"])
        now = state.quota.model_dump(exclude_unset=True)
        if was == now:
            return
        detail = json.dumps({"version": state.version, "was": was, "now": now})
        now_at = self._clock.now_at()
        await audit.record(tx, at=now_at, tenant=tenant, what="quota_override", detail=detail)

    def _standing(self, row: dict[str, Any]) -> Standing:
        quota = wire.QuotaOverride.model_validate(json.loads(row["quota"]))
        plan = self._plans.by_name.get(row["plan"], self._unheard.plan)
        status = cast(wire.Status, row["status"])
        spans, egress = plan.spans(row["since_at"]), bool(row["egress"])
        limits, until_at = quota.limits(), quota.until_at
        return Standing(plan, status, spans, row["version"], limits, egress, until_at)
