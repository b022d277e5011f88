"""Rows of `tenant`: made at sign-up, changed by admins, each change heard by the other rooms."""

from sqlalchemy import select, update
from sqlalchemy.engine import RowMapping

from gateway.models import account, tenant
from gateway.scope import Scope
from gateway.tenants import changes
from infra.kit import ids
from infra.kit.db import Reading, Transaction
from infra.kit.errors import AlcoveError

FIRST_PLAN = "free"


async def create(tx: Transaction, account_id: str) -> str:
    """Makes the tenant of a new account, on the plan that everybody begins with; answers its id."""
    tenant_id, now_at = ids.tenant_id(), await tx.now_at()
    await tx.execute(
        tenant.insert().values(
            id=tenant_id,
            account_id=account_id,
            plan=FIRST_PLAN,
            status="active",
            version=1,
            created_at=now_at,
            last_seen_at=now_at,
        )
    )
    await changes.mark(tx, tenant_id, 1)
    return tenant_id


async def get(reading: Reading, tenant_id: str) -> RowMapping:
    """The tenant with its account, for admins. Raises `not_found`."""
    row = await reading.row(
        select(tenant, account.c.email, account.c.is_admin)
        .join(account, account.c.id == tenant.c.account_id)
        .where(tenant.c.id == tenant_id)
    )
    if row is None:
        raise AlcoveError("not_found", "There is no such tenant.")
    return row


async def scope_of(reading: Reading, tenant_id: str) -> Scope:
    """The wall of one tenant, for what jobs and admins do to it. Raises `not_found`."""
    row = await get(reading, tenant_id)
    return Scope(tenant_id, row["account_id"])


async def change(tx: Transaction, tenant_id: str, **values: str | int | bool | None) -> RowMapping:
    """Changes columns of the tenant under the next version; answers the row as it was before.

    Raises `not_found`; `conflict` for a tenant that was deleted.
    """
    before = await tx.row(select(tenant).where(tenant.c.id == tenant_id).with_for_update())
    if before is None:
        raise AlcoveError("not_found", "There is no such tenant.")
    if before["status"] == "deleted":
        raise AlcoveError("conflict", "This tenant was deleted.")
    version = before["version"] + 1
    await tx.execute(
        update(tenant).where(tenant.c.id == tenant_id).values(version=version, **values)
    )
    await changes.mark(tx, tenant_id, version)
    return before


async def outrun(tx: Transaction, tenant_id: str, version: int) -> None:
    """Takes a version above `version` and lets every room hear of the tenant again."""
    ours = await tx.value(select(tenant.c.version).where(tenant.c.id == tenant_id))
    if ours is None:
        return
    next_version = max(ours, version) + 1
    await tx.execute(update(tenant).where(tenant.c.id == tenant_id).values(version=next_version))
    await changes.mark(tx, tenant_id, next_version)
