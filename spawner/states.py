"""The one table of legal transitions, and one function for each: compare-and-swap and its event.

Every function takes the row it was decided upon, writes only if state and generation are still
those, and gives the new row. `Moved` says that somebody else was first: read again, decide again.
A transient state has a deadline; whoever finds it passed ends it.
"""

from dataclasses import replace
from typing import Any

from sqlalchemy import update

from infra.kit.db import Reading, Transaction
from spawner import history, journal, wire
from spawner.instances import Row, read
from spawner.models import instance

LEGAL: dict[wire.State, frozenset[wire.State]] = {
    "absent": frozenset({"creating"}),
    "creating": frozenset({"starting", "stopping", "failed"}),
    "starting": frozenset({"ready", "stopping", "failed"}),
    "ready": frozenset({"stopping", "stopped", "failed"}),
    "stopping": frozenset({"stopped"}),
    "stopped": frozenset({"creating"}),
    "failed": frozenset({"creating"}),
}
RESTARTS = 3  # starts in a row that nobody asked for; then a crash loop waits for a person
STEADY_S = 60  # an instance that was ready for so long has shown that it works
_LONGEST_BACK_OFF_S = 300

SAYS: dict[wire.Phase, str] = {
    "queued": "Your assistant waits for a free place",
    "key": "Getting your assistant's key",
    "volume": "Finding its memory",
    "create": "Making its room",
    "start": "Opening the door",
    "answering": "Your assistant is waking up",
    "ready": "Your assistant is awake",
    "stopping": "Your assistant is going to sleep",
    "stopped": "Your assistant is asleep",
    "failed": "Your assistant could not wake up",
}


class Moved(Exception):
    """The instance is no longer in the state and generation that the decision was made upon."""


def back_off_s(failures: int) -> float:
    """Seconds before the next start after so many failures in a row: none at first, then 2, 4, 8 … 300."""
    return 0.0 if failures < 2 else min(_LONGEST_BACK_OFF_S, 2.0 ** min(failures - 1, 9))


async def to_creating(tx: Transaction, row: Row, *, runtime: str, timeout_s: float) -> Row:
    """absent, stopped, failed → creating: a new generation begins."""
    now_at = await tx.now_at()
    return await _move(
        tx,
        row,
        "creating",
        "key",
        generation=row.generation + 1,
        runtime=runtime,
        wanted_at=None,
        wanted_reason=None,
        retry_at=None,
        error_code=None,
        error_message=None,
        deadline_at=now_at + round(timeout_s * 1000),
        in_flight=0,
        busy_until_at=None,
        oom_kills=0,
        status_at=None,
    )


async def to_starting(tx: Transaction, row: Row, *, timeout_s: float) -> Row:
    """creating → starting: the runtime has it."""
    now_at = await tx.now_at()
    deadline_at = now_at + round(timeout_s * 1000)
    return await _move(tx, row, "starting", "start", deadline_at=deadline_at)


async def to_ready(tx: Transaction, row: Row, *, url: str) -> Row:
    """starting → ready: the right generation answered at `url`."""
    now_at = await tx.now_at()
    return await _move(
        tx, row, "ready", "ready", url=url, started_at=now_at, deadline_at=None, retry_at=None
    )


async def to_stopping(
    tx: Transaction, row: Row, *, timeout_s: float, message: str | None = None
) -> Row:
    """creating, starting, ready → stopping."""
    now_at = await tx.now_at()
    deadline_at = now_at + round(timeout_s * 1000)
    return await _move(
        tx, row, "stopping", "stopping", message=message, url=None, deadline_at=deadline_at
    )


async def to_stopped(tx: Transaction, row: Row, *, message: str | None = None) -> Row:
    """stopping → stopped, and ready → stopped where the instance is found removed."""
    steady = await _was_steady(tx, row)
    return await _move(
        tx,
        row,
        "stopped",
        "stopped",
        message=message,
        url=None,
        deadline_at=None,
        in_flight=0,
        busy_until_at=None,
        failures=0 if steady else row.failures,
    )


async def to_failed(tx: Transaction, row: Row, error: wire.Problem) -> Row:
    """creating, starting, ready → failed: counted, and kept from starting again too soon."""
    now_at = await tx.now_at()
    failures = 1 if await _was_steady(tx, row) else row.failures + 1
    return await _move(
        tx,
        row,
        "failed",
        "failed",
        url=None,
        deadline_at=None,
        in_flight=0,
        busy_until_at=None,
        error_code=error.code,
        error_message=error.message,
        failures=failures,
        retry_at=now_at + round(back_off_s(failures) * 1000),
    )


async def tell(tx: Transaction, row: Row, phase: wire.Phase, message: str | None = None) -> Row:
    """No transition: the next phase within the state, as a numbered event. Raises Moved."""
    return await _write(tx, row, phase, message, {})


async def again(reading: Reading, row: Row) -> Row:
    """The row as it is now, still in the same state and generation. Raises Moved."""
    now = await read(reading, row.tenant)
    if now is None or (now.state, now.generation) != (row.state, row.generation):
        raise Moved(f"{row.tenant} is no longer {row.state} in generation {row.generation}")
    return now


async def set_plan(tx: Transaction, tenant: str, plan: str) -> None:
    """No transition: the plan that the meter named with the key."""
    await tx.execute(update(instance).where(instance.c.tenant == tenant).values(plan=plan))


async def _was_steady(tx: Transaction, row: Row) -> bool:
    if row.state not in ("ready", "stopping") or row.started_at is None:
        return False
    return await tx.now_at() - row.started_at >= STEADY_S * 1000


async def _move(
    tx: Transaction,
    row: Row,
    state: wire.State,
    phase: wire.Phase,
    *,
    message: str | None = None,
    **values: Any,
) -> Row:
    if state not in LEGAL[row.state]:
        raise AssertionError(f"no transition leads from {row.state} to {state}")
    values |= {"state": state, "changed_at": await tx.now_at()}
    return await _write(tx, row, phase, message, values)


async def _write(
    tx: Transaction, row: Row, phase: wire.Phase, message: str | None, values: dict[str, Any]
) -> Row:
    # `seq` is read under the same compare-and-swap, so that events number without holes.
    values |= {"phase": phase, "seq": row.seq + 1}
    matched = await tx.execute(
        update(instance)
        .where(
            instance.c.tenant == row.tenant,
            instance.c.state == row.state,
            instance.c.generation == row.generation,
            instance.c.seq == row.seq,
        )
        .values(values)
    )
    if matched != 1:
        raise Moved(f"{row.tenant} is no longer {row.state} in generation {row.generation}")
    now = replace(row, **values)
    await journal.append(
        tx,
        now,
        at=await tx.now_at(),
        message=message or SAYS[phase],
        typical_ms=await history.typical_ms(tx, phase),
    )
    return now
