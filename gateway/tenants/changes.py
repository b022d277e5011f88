"""The outbox: which rooms have not yet heard of a tenant's newest version."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, delete, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import RowMapping

from gateway.models import tenant, tenant_change
from infra.kit.db import Reading, Transaction

ROOMS = ("meter", "spawner")


@dataclass(frozen=True, slots=True)
class Standing:
    """What the other rooms need to know of a tenant."""

    tenant: str
    plan: str
    status: str
    version: int
    quota_charge_month_nanos: int | None
    egress: bool


async def mark(tx: Transaction, tenant_id: str, version: int, rooms: Sequence[str] = ROOMS) -> None:
    """Notes that `rooms` must hear of `version`; sent as soon as the transaction is through."""
    now_at = await tx.now_at()
    dialect = postgresql if tx.is_postgres else sqlite
    for room in rooms:
        fresh = {"version": version, "attempts": 0, "retry_at": now_at, "last_error": None}
        await tx.execute(
            dialect.insert(tenant_change)
            .values(tenant=tenant_id, room=room, **fresh)
            .on_conflict_do_update(index_elements=["tenant", "room"], set_=fresh)
        )


async def due(reading: Reading, room: str, longest_s: float, limit: int = 100) -> list[Standing]:
    """Tenants whose change `room` has not heard of, oldest first. What would wait for more than
    `longest_s`, as nothing does, was noted before the clock was set back."""
    now_at = await reading.now_at()
    retry_at = tenant_change.c.retry_at
    rows = await reading.rows(
        _standing()
        .join(tenant_change, tenant_change.c.tenant == tenant.c.id)
        .where(
            tenant_change.c.room == room,
            or_(retry_at <= now_at, retry_at > now_at + round(longest_s * 1000)),
        )
        .order_by(tenant_change.c.retry_at)
        .limit(limit)
    )
    return [_row_to_standing(row) for row in rows]


async def count(reading: Reading, room: str) -> int:
    """How many tenants' changes `room` has not heard of."""
    found: int = await reading.value(
        select(func.count()).select_from(tenant_change).where(tenant_change.c.room == room)
    )
    return found


async def standing(reading: Reading, tenant_id: str) -> Standing | None:
    """What other rooms should know of this tenant."""
    row = await reading.row(_standing().where(tenant.c.id == tenant_id))
    return _row_to_standing(row) if row else None


async def all_standings(reading: Reading, after: str = "", limit: int = 500) -> list[Standing]:
    """Every tenant in pages by id, for the daily comparison."""
    rows = await reading.rows(
        _standing().where(tenant.c.id > after).order_by(tenant.c.id).limit(limit)
    )
    return [_row_to_standing(row) for row in rows]


async def heard(tx: Transaction, room: str, tenant_id: str, version: int) -> None:
    """`room` has taken `version`; a newer change that came meanwhile stays due."""
    await tx.execute(
        delete(tenant_change).where(
            tenant_change.c.tenant == tenant_id,
            tenant_change.c.room == room,
            tenant_change.c.version <= version,
        )
    )


async def failed(
    tx: Transaction, room: str, tenant_id: str, why: str, first_s: float, longest_s: float
) -> None:
    """`room` did not take it; tries again after a time that doubles from `first_s` to `longest_s`."""
    where = (tenant_change.c.tenant == tenant_id, tenant_change.c.room == room)
    attempts = await tx.value(select(tenant_change.c.attempts).where(*where))
    if attempts is None:
        return
    wait_s = min(longest_s, first_s * 2 ** min(attempts, 20))
    await tx.execute(
        update(tenant_change)
        .where(*where)
        .values(
            attempts=attempts + 1,
            retry_at=await tx.now_at() + round(wait_s * 1000),
            last_error=why[:200],
        )
    )


_OF_A_STANDING = ("id", "plan", "status", "version", "quota_charge_month_nanos", "egress")


def _standing() -> Select[*tuple[Any, ...]]:
    return select(*tenant.c[_OF_A_STANDING])


def _row_to_standing(row: RowMapping) -> Standing:
    return Standing(*(row[name] for name in _OF_A_STANDING))
