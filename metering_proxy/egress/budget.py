"""What tenants have taken of their days: bytes, tunnels and calls, in rows keyed by the day's start.

Bytes are taken from the row in portions before they pass, and what is left of a portion is given back. So no
budget is ever passed, whichever process the bytes go through; a process that dies leaves a portion too much.
"""

import asyncio
from typing import Literal

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.sql.elements import KeyedColumnElement

from infra.kit.db import Database, Transaction, sql
from infra.kit.errors import AlcoveError
from metering_proxy.egress.rules import Rules
from metering_proxy.egress.tables import egress_day as table

FIRST_BYTES = 256 * 1024
PORTION_BYTES = 1024 * 1024
_NO_LIMIT = 2**62
_OPEN = sql(
    "INSERT INTO egress_day (account, start_at, bytes, tunnels, calls)"
    " VALUES (:account, :start_at, 0, 0, 0) ON CONFLICT DO NOTHING"
)
Kind = Literal["tunnels", "calls"]
Day = tuple[int, int]


class Budget:
    """The rows. A `day` is (start, end), both in ms."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def enter(self, account: str, day: Day, kind: Kind, rules: Rules) -> "Allowance":
        """Counts one more tunnel or call, and takes the first bytes for it; a refusal counts nothing.

        Raises `rate_limited` (reasons `egress_ways_day`, `egress_bytes_day`) with `resets_at`.
        """
        mine = _is(account, day)
        most = _NO_LIMIT if rules.ways_day is None else rules.ways_day
        begun: KeyedColumnElement[int] = table.c[kind]
        async with self._db.transaction() as tx:
            await tx.execute(_OPEN, {"account": account, "start_at": day[0]})
            room = table.c.tunnels + table.c.calls < most
            if not await tx.execute(update(table).where(mine, room).values({kind: begun + 1})):
                raise _used_up("egress_ways_day", "ways out", day)
            left = await _take(tx, mine, rules, FIRST_BYTES)
            if not left:
                raise _used_up("egress_bytes_day", "bytes", day)
        return Allowance(self, account, day, rules, left)

    async def take(self, account: str, day: Day, rules: Rules, size: int) -> int:
        """As many of `size` bytes as the day has left."""
        mine = _is(account, day)
        async with self._db.transaction() as tx:
            # Locks the row, so that no other process takes the same bytes.
            await tx.execute(update(table).where(mine).values(bytes=table.c.bytes))
            return await _take(tx, mine, rules, size)

    async def give(self, account: str, day: Day, size: int) -> None:
        """Gives back what did not pass."""
        async with self._db.transaction() as tx:
            await tx.execute(
                update(table).where(_is(account, day)).values(bytes=table.c.bytes - size)
            )


class Allowance:
    """Bytes that one way out may still pass, taken from its account's day."""

    def __init__(self, budget: Budget, account: str, day: Day, rules: Rules, left: int) -> None:
        self._budget, self._account, self._day, self._rules = budget, account, day, rules
        self._left = left
        self._taking = asyncio.Lock()
        self.passed = 0

    async def spend(self, size: int) -> None:
        """Before `size` bytes pass. Raises `rate_limited` (`egress_bytes_day`) where the day has them not."""
        if size > self._left:
            # In a task: what was taken must reach us though the caller leaves meanwhile.
            await asyncio.shield(asyncio.ensure_future(self._refill(size)))
        if size > self._left:
            raise _used_up("egress_bytes_day", "bytes", self._day)
        self._left -= size
        self.passed += size

    async def close(self) -> None:
        """Gives back what is left."""
        async with self._taking:
            left, self._left = self._left, 0
            if left:
                await self._budget.give(self._account, self._day, left)

    async def _refill(self, size: int) -> None:
        async with self._taking:
            if size > self._left:
                want = max(size, PORTION_BYTES)
                self._left += await self._budget.take(self._account, self._day, self._rules, want)


async def _take(tx: Transaction, mine: ColumnElement[bool], rules: Rules, size: int) -> int:
    taken = await tx.value(select(table.c.bytes).where(mine))
    most = _NO_LIMIT if rules.bytes_day is None else rules.bytes_day
    granted = max(0, min(size, most - int(taken)))
    await tx.execute(update(table).where(mine).values(bytes=table.c.bytes + granted))
    return granted


def _is(account: str, day: Day) -> ColumnElement[bool]:
    mine = table.c.account == account
    return mine & (table.c.start_at == day[0])


def _used_up(reason: str, what: str, day: Day) -> AlcoveError:
    return AlcoveError(
        "rate_limited", f"this day has used up the plan's {what}", reason=reason, resets_at=day[1]
    )
