"""The ledger's batches on PostgreSQL: one connection kept for them, spoken to as its driver likes it best.

A batch is one statement, and so one round trip and one transaction: what the process remembers is taken for true,
and `ledger_post` (made by migration 0010) compares it under locks before it writes. Where it was not true, or more
has to be known, the batch is done again in a transaction that locks and reads first.
"""

import contextlib
import time
from collections.abc import Callable, Container, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import asyncpg
import orjson
from sqlalchemy.util import await_only, greenlet_spawn

from infra.kit.clock import Clock
from infra.kit.db import Database
from infra.kit.engine import Connection
from metering_proxy.ledger import batch, loading
from metering_proxy.ledger.memory import Memory
from metering_proxy.ledger.ops import Answer, Op
from metering_proxy.ledger.optimistic import OptimisticTx, Unknown
from metering_proxy.ledger.posting import Posting, Row
from metering_proxy.ledger.statements import with_numbers
from metering_proxy.ledger.stores import Away
from metering_proxy.ledger.tx import Key, Mark, Values
from metering_proxy.ledger.unit_of_work import UnitOfWork

_NOW = "SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)"
_POST = f"SELECT ledger_post({', '.join(f'${n}' for n in range(1, 22))})"
# By how much a guess at the database's clock may be wrong.
_CLOCK_OFF_MS = 1_000
_AT_FAULT = ("22", "23", "42")  # classes of SQLSTATE: values, constraints, statements


class _Tx:
    """Asks for everything, and locks it. Of its own reservations a process knows all but whether they run."""

    lock = " FOR UPDATE"

    def __init__(self, raw: Any, memory: Memory, worker: str, lease_ms: int, now_at: int) -> None:
        self._raw, self._memory = raw, memory
        self.worker, self.lease_ms, self.now_at = worker, lease_ms, now_at
        self.marked: Container[Mark] = memory.marked

    def reservations(self, ids: Sequence[str], *, whole: bool) -> Iterator[dict[str, Any]]:
        known = {} if whole else self._memory.reservations
        mine = loading.running(self, [id for id in ids if id in known])
        yield from (dict(known[id]) for id in mine)
        yield from loading.reservations(self, [id for id in ids if id not in mine])

    def windows(
        self, keys: Sequence[Key], made: AbstractSet[Key]
    ) -> Iterator[tuple[Key, int, int]]:
        return loading.windows(self, keys, made)

    def calls(self, accounts: Sequence[str]) -> Iterator[tuple[str, str, int]]:
        return loading.calls(self, accounts)

    def rows(self, sql: str, values: Values) -> Sequence[Sequence[Any]]:
        text, pick = with_numbers(sql)
        found: Sequence[Sequence[Any]] = await_only(self._raw.fetch(text, *pick(values)))
        return found

    def run(self, sql: str, values: Values) -> int:
        text, pick = with_numbers(sql)
        done: str = await_only(self._raw.execute(text, *pick(values)))  # such as "UPDATE 1"
        return int(done.rpartition(" ")[2])

    def post(self, posting: Posting) -> None:
        """See `Tx.post`. Who holds the locks has counted right, and goes by the clock that it was given."""
        posting.calls = []
        if not await_only(self._raw.fetchval(_POST, *_arguments(posting, None))):
            raise RuntimeError("what is locked was changed, so nothing was posted")


class PostgresStore:
    """See `stores.Store`. One batch at a time, as a writer has them; several processes may write beside each
    other."""

    def __init__(
        self,
        db: Database,
        worker: str,
        lease_ms: int,
        clock: Clock | None,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db, self._worker, self._lease_ms, self._clock = db, worker, lease_ms, clock
        self._monotonic_s = monotonic_s
        self._connection: Connection | None = None
        self._raw: Any = None  # the driver's own below it
        self._memory = Memory()
        self._ahead_ms: int | None = None  # the database's clock, of this process's monotonic one

    async def apply(self, ops: Sequence[Op]) -> list[Answer]:
        """See `Store.apply`."""
        try:
            raw = self._raw or await self._open()
            answers = await self.apply_optimistically(raw, ops)
            if answers is not None:
                return answers
            async with raw.transaction():
                answers, work = await self.apply_in(raw, ops)
        except BaseException as error:
            self._memory.forget()
            if isinstance(error, Exception) and _is_at_fault(error):
                raise
            await self._drop()
            if isinstance(
                error, asyncpg.PostgresError | asyncpg.InterfaceError | OSError | TimeoutError
            ):
                raise Away(str(error)) from error
            raise
        self._memory.follow(work)
        return answers

    async def close(self) -> None:
        """See `Store.close`."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = self._raw = None

    async def apply_optimistically(self, raw: Any, ops: Sequence[Op]) -> list[Answer] | None:
        """Does a batch by what is remembered; None where that was not true or not enough, and nothing was done."""
        if self._clock:
            now_at, off_ms = self._clock.now_at(), None
        elif self._ahead_ms is not None:
            now_at, off_ms = self._monotonic_ms() + self._ahead_ms, _CLOCK_OFF_MS
        else:
            return None
        tx = OptimisticTx(self._memory, self._worker, self._lease_ms, now_at)
        try:
            answers, work = batch.apply_all(tx, ops)
        except Unknown:
            return None
        assert tx.posting is not None, "a unit of work is posted"
        if not await raw.fetchval(_POST, *_arguments(tx.posting, off_ms)):
            return None
        self._memory.follow(work)
        return answers

    async def apply_in(self, raw: Any, ops: Sequence[Op]) -> tuple[list[Answer], UnitOfWork]:
        """Does a batch on a driver's connection whose transaction the caller holds open and ends."""
        if self._clock:
            now_at = self._clock.now_at()
        else:
            now_at = await raw.fetchval(_NOW)
            self._ahead_ms = now_at - self._monotonic_ms()
        tx = _Tx(raw, self._memory, self._worker, self._lease_ms, now_at)
        return await greenlet_spawn(batch.apply_all, tx, ops)

    def _monotonic_ms(self) -> int:
        return int(self._monotonic_s() * 1000)

    async def _open(self) -> Any:
        self._connection = await self._db.engine.open()
        self._raw = await driver(self._connection)
        return self._raw

    async def _drop(self) -> None:
        """Nobody knows what state it is in; the next batch gets another one."""
        connection, self._connection, self._raw = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(Exception):
                await connection.invalidate()
                await connection.close()


async def driver(connection: Connection) -> Any:
    """asyncpg's own connection below SQLAlchemy's, which has begun no transaction on it."""
    return (await connection.raw()).driver_connection


def _arguments(posting: Posting, off_ms: int | None) -> Sequence[Any]:
    """A posting as `ledger_post` takes it: narrow rows as an array for each column, wide ones as JSON."""
    return (
        posting.now_at,
        off_ms,
        posting.until_at,
        posting.running,
        *_columns(posting.windows, 7),
        *_columns(posting.calls, 2),
        *_columns(posting.ended, 2),
        *_columns(posting.renewed, 2),
        *map(_json, (posting.made, posting.rerouted, posting.entries, posting.marks)),
    )


def _columns(rows: Sequence[tuple[Any, ...]], count: int) -> Sequence[Sequence[Any]]:
    return tuple(zip(*rows, strict=True)) if rows else ((),) * count


def _json(rows: Sequence[Row]) -> str | None:
    return orjson.dumps(rows).decode() if rows else None


def _is_at_fault(error: Exception) -> bool:
    """Whether the batch itself is wrong (its values, a constraint) rather than the database away or busy."""
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "")[:2] in _AT_FAULT
    # asyncpg says DataError, which is a ValueError, where it cannot even send a value.
    return isinstance(error, ValueError) or not isinstance(
        error, asyncpg.InterfaceError | OSError | TimeoutError
    )
