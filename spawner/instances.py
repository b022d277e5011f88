"""The `instance` row as a value: reading it, and what it shows to the outside. Writing: states.py."""

from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import RowMapping

from infra.kit.db import Reading, Transaction
from spawner import wire
from spawner.models import instance
from spawner.plans import DEFAULT, Plans

TRANSIENT: tuple[wire.State, ...] = ("creating", "starting", "stopping")
_SCHEDULE_NEAR_S = 60  # going to sleep for less than this is not worth the way
AT_REST: tuple[wire.State, ...] = ("absent", "stopped", "failed")


@dataclass(frozen=True, slots=True)
class Row:
    """One tenant's instance as the database has it; the columns are explained in models.py."""

    tenant: str
    state: wire.State
    generation: int
    phase: wire.Phase
    seq: int
    plan: str
    suspended: bool
    runtime: str | None
    url: str | None
    wanted_at: int | None
    wanted_reason: str | None
    failures: int
    retry_at: int | None
    error_code: str | None
    error_message: str | None
    changed_at: int
    deadline_at: int | None
    started_at: int | None
    person_at: int | None
    busy_at: int | None
    busy_until_at: int | None
    next_schedule_at: int | None
    in_flight: int
    waiting: int
    unread: int
    oom_kills: int
    status_at: int | None
    stored_bytes: int | None
    clearing_until_at: int | None

    @classmethod
    def of(cls, found: RowMapping) -> "Row":
        """The row as a value."""
        return cls(**{name: found[name] for name in _NAMES})

    @property
    def last_activity_at(self) -> int | None:
        """When something last counted as activity: a person, a turn seen in flight, or the start."""
        moments = [at for at in (self.person_at, self.busy_at, self.started_at) if at is not None]
        return max(moments, default=None)


_NAMES = tuple(field.name for field in fields(Row))


async def read(reading: Reading, tenant: str) -> Row | None:
    """The tenant's row, or None for a tenant that nobody ever spoke of."""
    found = await reading.row(select(instance).where(instance.c.tenant == tenant))
    return Row.of(found) if found else None


async def read_all(reading: Reading, *states: wire.State) -> list[Row]:
    """Every row in one of `states` (all rows where none is named)."""
    query = select(instance)
    if states:
        query = query.where(instance.c.state.in_(states))
    return [Row.of(found) for found in await reading.rows(query)]


async def obtain(tx: Transaction, tenant: str) -> Row:
    """The tenant's row, made as `absent` where there is none, and locked until the transaction ends."""
    mine = select(instance).where(instance.c.tenant == tenant).with_for_update()
    found = await tx.row(mine)
    if found:
        return Row.of(found)
    values = {
        "tenant": tenant,
        "state": "absent",
        "phase": "stopped",
        "changed_at": await tx.now_at(),
    }
    if tx.is_postgres:  # where two transactions may come here at once
        await tx.execute(postgresql.insert(instance).values(values).on_conflict_do_nothing())
    else:
        await tx.execute(sqlite.insert(instance).values(values).on_conflict_do_nothing())
    made = await tx.row(mine)
    assert made is not None
    return Row.of(made)


def absent(tenant: str) -> wire.Instance:
    """How a tenant that nobody ever spoke of looks from outside."""
    return wire.Instance(tenant=tenant, state="absent", plan=DEFAULT)


def alive_because(row: Row, now_at: int, idle_s: float) -> str | None:
    """Why a ready instance may not be stopped for idleness now, in a person's words; None: it may.

    What counts: a turn in flight, the agent's own lease, and the idle time since the last of a
    person's byte, a turn seen in flight, and the start. Open streams and probes never do.
    """
    if row.in_flight:
        return "a turn is running"
    if row.busy_until_at is not None and row.busy_until_at > now_at:
        return f"the agent asked for {duration(row.busy_until_at - now_at)} more"
    if (
        row.next_schedule_at is not None
        and abs(row.next_schedule_at - now_at) < _SCHEDULE_NEAR_S * 1000
    ):
        return "a schedule is due"
    last = row.last_activity_at
    if last is None or now_at - last > idle_s * 1000:
        return None
    left = duration(last + round(idle_s * 1000) - now_at)
    cause = "a person was here"
    if last == row.busy_at and last != row.person_at:
        cause = "a turn was running"
    elif last == row.started_at and last != row.person_at:
        cause = "it was started"
    return f"{cause} {duration(now_at - last)} ago; it may sleep in {left}"


def duration(ms: int) -> str:
    """A length of time in a person's words: seconds up to two minutes, then minutes."""
    seconds = max(0, round(ms / 1000))
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"


def outside(row: Row, *, now_at: int, plans: Plans, owner_uid: int) -> wire.Instance:
    """What the row shows to callers of the spawner."""
    ready = row.state == "ready"
    error = None
    if row.error_code is not None:
        error = wire.Problem(code=row.error_code, message=row.error_message or "")
    limits = plans.limits(row.plan)
    values: dict[str, Any] = {
        "storage_bytes": limits.storage_bytes,
        "url": row.url if ready else None,
        "owner_uid": owner_uid if ready else None,
        "alive_because": alive_because(row, now_at, limits.idle_s) if ready else None,
        "error": error,
    }
    for name in wire.Instance.model_fields:
        if name not in values:
            values[name] = getattr(row, name)
    return wire.Instance(**values)
