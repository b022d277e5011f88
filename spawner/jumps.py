"""A wall clock that jumps (a bad time server, a machine that slept): what was noted by it moves along.

How long somebody has been idle, or must wait, is a length of time; it is kept in the database as a moment,
so that a restart forgets nothing. When the wall clock and the monotonic one disagree, the moments noted
before the jump are moved by it. Schedules are moments for people and stay where they are.
"""

import logging

from sqlalchemy import ColumnElement, Table, case, update

from infra.kit.clock import Clock
from infra.kit.db import Database
from spawner.models import instance
from spawner.storage import CLEARING_MS

log = logging.getLogger(__name__)
_NOTICED_MS = 20_000  # less than that is a clock being set right bit by bit
_PAST = ("person_at", "busy_at", "started_at", "wanted_at", "status_at")
# The longest that each may lie ahead, whatever the clock was when it was noted.
_TO_COME = {
    "busy_until_at": 3_600_000,
    "retry_at": 300_000,
    "deadline_at": 3_600_000,
    "clearing_until_at": CLEARING_MS,
}


class Jumps:
    """Compares the two clocks whenever it is asked to."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db, self._clock = db, clock
        self._seen: tuple[int, float] | None = None

    async def follow(self) -> None:
        """Moves what was noted before a jump. The first time, when nobody knows of a jump, only what lies
        in the future though it is past becomes the present."""
        now_at, monotonic_s = self._clock.now_at(), self._clock.monotonic_s()
        before, self._seen = self._seen, (now_at, monotonic_s)
        if before is None:
            await self._move(now_at, 0)
            return
        passed_ms = round((monotonic_s - before[1]) * 1000)
        jump_ms = now_at - before[0] - passed_ms
        if abs(jump_ms) >= _NOTICED_MS:
            log.warning("the clock jumped", extra={"seconds": jump_ms // 1000})
            await self._move(now_at, jump_ms)

    async def _move(self, now_at: int, jump_ms: int) -> None:
        values = {name: _moved(instance, name, now_at, jump_ms) for name in _PAST}
        for name, longest_ms in _TO_COME.items():
            column = instance.c[name]
            moved = column + jump_ms
            values[name] = case((moved > now_at + longest_ms, now_at + longest_ms), else_=moved)
        async with self._db.transaction() as tx:
            await tx.execute(update(instance).values(values))


def _moved(table: Table, name: str, now_at: int, jump_ms: int) -> ColumnElement[int]:
    """A past moment by the new clock. After a jump ahead, what lies behind the jump was noted before it;
    after a jump back, or where nobody knows, what lies ahead of now was."""
    column = table.c[name]
    if jump_ms > 0:
        return case((column <= now_at - jump_ms, column + jump_ms), else_=column)
    return case(
        (column + jump_ms > now_at, now_at), (column > now_at, column + jump_ms), else_=column
    )
