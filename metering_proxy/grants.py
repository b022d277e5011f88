"""Grants: money that a tenant has beside its plan. Made once by their id, spent by the ledger, taken back.

`credit` is money that was paid or given; `grace` is a named extra that ends on a day, so that nobody is cut off
while a matter is being settled. The ledger spends both alike.
"""

from typing import Any

from sqlalchemy import ColumnElement, insert, select, update

from infra.kit.clock import Clock
from infra.kit.db import Database, Transaction
from infra.kit.errors import AlcoveError
from metering_proxy import wire
from metering_proxy.models import credit_grant as table


class Grants:
    """Every tenant's grants."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db, self._clock = db, clock

    async def put(self, tenant: str, grant: str, request: wire.GrantRequest) -> wire.Grant:
        """Makes a grant. The same again: the same grant, as it is by now.

        Raises `invalid` (a grace needs a name and an end), `conflict` (another grant has that id).
        """
        if request.kind == "grace" and not (request.expires_at and request.note):
            raise AlcoveError("invalid", "a grace needs a note and an end", reason="grace")
        asked = request.model_dump()
        async with self._db.transaction() as tx:
            await tx.alone(f"grant/{grant}")
            found = await self._find(tx, grant)
            if found is None:
                now_at = self._clock.now_at()
                if request.expires_at is not None and request.expires_at <= now_at:
                    raise AlcoveError("invalid", "this grant would be over", reason="expires_at")
                found = {
                    "id": grant,
                    "account": tenant,
                    "spent_nanos": 0,
                    "held_nanos": 0,
                    "created_at": now_at,
                    "revoked_at": None,
                    **asked,
                }
                await tx.execute(insert(table).values(found))
        if found["account"] != tenant or any(found[name] != asked[name] for name in asked):
            raise AlcoveError("conflict", "another grant has this id", reason="grant")
        return _shown(found)

    async def revoke(self, tenant: str, grant: str) -> wire.Grant:
        """Ends a grant: running calls may still spend what they hold. Raises `not_found`."""
        async with self._db.transaction() as tx:
            open_ = table.c.revoked_at.is_(None)
            ended = update(table).where(table.c.id == grant, table.c.account == tenant, open_)
            await tx.execute(ended.values(revoked_at=self._clock.now_at()))
            found = await self._find(tx, grant)
        if found is None or found["account"] != tenant:
            raise AlcoveError("not_found", "there is no such grant")
        return _shown(found)

    async def listed(self, tenant: str) -> wire.Grants:
        """All of a tenant's grants, in the order in which they are spent."""
        async with self._db.read() as reading:
            rows = await reading.rows(select(table).where(table.c.account == tenant))
            now_at = await reading.now_at()
        grants = sorted((_shown(dict(row)) for row in rows), key=lambda grant: _rank(grant, now_at))
        return wire.Grants(grants=grants)

    async def _find(self, tx: Transaction, grant: str) -> dict[str, Any] | None:
        row = await tx.row(select(table).where(table.c.id == grant))
        return None if row is None else dict(row)


def live(tenant: str, now_at: int) -> tuple[ColumnElement[bool], ...]:
    """The conditions of a tenant's grants that still pay for calls."""
    unexpired = table.c.expires_at.is_(None) | (table.c.expires_at > now_at)
    return table.c.account == tenant, table.c.revoked_at.is_(None), unexpired


def _rank(grant: wire.Grant, now_at: int) -> tuple[bool, bool, int, str]:
    ends_at = grant.expires_at
    over = grant.revoked_at is not None or (ends_at is not None and ends_at <= now_at)
    return over, ends_at is None, ends_at or 0, grant.id


def _shown(row: dict[str, Any]) -> wire.Grant:
    return wire.Grant.model_validate(
        {"tenant": row["account"], **{n: v for n, v in row.items() if n != "account"}}
    )
