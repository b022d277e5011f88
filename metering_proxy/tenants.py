"""What the gateway has decided about each tenant, kept in a row and in memory. Keys are keys.py's matter.

A tenant that the meter has not heard of is free and active, for calls with a valid key. Suspended and deleted are
rows that stay.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from sqlalchemy import insert, select, update

from infra.kit.clock import Clock
from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from metering_proxy import changes, wire
from metering_proxy.ledger.windows import Spans
from metering_proxy.models import tenant as table
from metering_proxy.plans import FREE, NO_LIMIT, Limit, Plan, Plans


@dataclass(frozen=True, slots=True)
class Standing:
    """A tenant's plan and status. `overrides` replace limits of the plan by name; None: no limit.

    `spans`: where its windows begin and end. `egress`: whether it may send anonymous traffic out.
    """

    plan: Plan
    status: wire.Status
    spans: Spans
    version: int = -1
    overrides: Mapping[str, int | None] = field(default_factory=dict)
    egress: bool = False

    def limits(self) -> list[Limit]:
        """The limits in force. Charge of the month is always counted, limited or not."""
        limits = dict(self.plan.limits)
        limits.setdefault("charge_month", Limit("charge", "month", NO_LIMIT))
        for kind, value in self.overrides.items():
            if kind in limits:
                was = limits[kind]
                amount = NO_LIMIT if value is None else value
                limits[kind] = Limit(was.measure, was.period, amount)
        return list(limits.values())

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
        self._use(plans)

    @property
    def plans(self) -> Plans:
        """The plans in force."""
        return self._plans

    async def load(self, plans: Plans | None = None) -> None:
        """Reads every row anew, by other plans if given; calls under way keep what they began with."""
        async with self._db.read() as reading:
            rows = await reading.rows(select(table))
        if plans is not None:
            self._use(plans)
        self._known = {row["tenant"]: self._standing(dict(row)) for row in rows}

    async def refresh(self, tenants: Collection[str]) -> None:
        """Reads these tenants' rows anew: another process has changed them."""
        async with self._db.read() as reading:
            rows = await reading.rows(select(table).where(table.c.tenant.in_(tenants)))
        self._known |= {row["tenant"]: self._standing(dict(row)) for row in rows}

    def _use(self, plans: Plans) -> None:
        free = plans.get(FREE)
        self._plans = plans
        self._unheard = Standing(free, "active", free.spans(0))

    def standing(self, tenant: str) -> Standing:
        """The tenant's standing; free and active where nothing was ever heard."""
        return self._known.get(tenant, self._unheard)

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
            kept = await tx.row(select(table).where(mine))
            if kept is None or kept["plan"] != state.plan:
                values["since_at"] = values["changed_at"]
            if kept is None:
                await tx.execute(insert(table).values(tenant=tenant, **values))
            else:
                newer = table.c.version < state.version
                await tx.execute(update(table).where(mine, newer).values(values))
            await changes.note(tx, "tenant", tenant)
            kept = await tx.row(select(table).where(mine))
        assert kept is not None
        row = dict(kept)
        self._known[tenant] = self._standing(row)
        return wire.Tenant(
            tenant=tenant,
            plan=row["plan"],
            status=row["status"],
            version=row["version"],
            quota=wire.QuotaOverride.model_validate(json.loads(row["quota"])),
            egress=bool(row["egress"]),
        )

    def _standing(self, row: dict[str, Any]) -> Standing:
        quota = json.loads(row["quota"])
        overrides = {name.removesuffix("_nanos"): value for name, value in quota.items()}
        plan = self._plans.by_name.get(row["plan"], self._unheard.plan)
        status = cast(wire.Status, row["status"])
        spans, egress = plan.spans(row["since_at"]), bool(row["egress"])
        return Standing(plan, status, spans, row["version"], overrides, egress)
