"""The ledger's batches on PostgreSQL: one connection kept for them, spoken to as its driver likes it best.

Through SQLAlchemy's own way a statement costs several times what it costs the driver, and a batch has ten.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

import asyncpg
from sqlalchemy.util import await_only, greenlet_spawn

from infra.kit.clock import Clock
from infra.kit.db import Database
from infra.kit.engine import Connection
from metering_proxy.ledger import book
from metering_proxy.ledger.ops import Answer, Op
from metering_proxy.ledger.sheet import Own, Sheet
from metering_proxy.ledger.statements import with_numbers
from metering_proxy.ledger.stores import Away
from metering_proxy.ledger.tx import Values

_NOW = "SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)"
_AT_FAULT = ("22", "23", "42")  # classes of SQLSTATE: values, constraints, statements


class _Tx:
    lock = " FOR UPDATE"

    def __init__(self, raw: Any, worker: str, lease_ms: int, now_at: int) -> None:
        self._raw = raw
        self.worker, self.lease_ms, self.now_at = worker, lease_ms, now_at

    def rows(self, sql: str, values: Values) -> Sequence[Sequence[Any]]:
        text, pick = with_numbers(sql)
        found: Sequence[Sequence[Any]] = await_only(self._raw.fetch(text, *pick(values)))
        return found

    def run(self, sql: str, values: Values) -> int:
        text, pick = with_numbers(sql)
        done: str = await_only(self._raw.execute(text, *pick(values)))  # such as "UPDATE 1"
        return int(done.rpartition(" ")[2])

    def many(self, sql: str, values: Sequence[Values]) -> None:
        text, pick = with_numbers(sql)
        await_only(self._raw.executemany(text, [pick(one) for one in values]))


class PostgresStore:
    """See `stores.Store`. One batch at a time, as a writer has them; several processes may write beside each
    other."""

    def __init__(self, db: Database, worker: str, lease_ms: int, clock: Clock | None) -> None:
        self._db, self._worker, self._lease_ms, self._clock = db, worker, lease_ms, clock
        self._connection: Connection | None = None
        self._own = Own()

    async def apply(self, ops: Sequence[Op]) -> list[Answer]:
        """See `Store.apply`."""
        try:
            connection = self._connection or await self._open()
            raw = await driver(connection)
            async with raw.transaction():
                answers, sheet = await self.apply_in(raw, ops)
        except BaseException as error:
            self._own.doubt(book.ending(ops))
            if isinstance(error, Exception) and _is_at_fault(error):
                raise
            await self._drop()
            if isinstance(
                error, asyncpg.PostgresError | asyncpg.InterfaceError | OSError | TimeoutError
            ):
                raise Away(str(error)) from error
            raise
        self._own.follow(sheet)
        return answers

    async def close(self) -> None:
        """See `Store.close`."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def apply_in(self, raw: Any, ops: Sequence[Op]) -> tuple[list[Answer], Sheet]:
        """The same on a driver's connection whose transaction the caller holds open and ends."""
        now_at = self._clock.now_at() if self._clock else await raw.fetchval(_NOW)
        tx = _Tx(raw, self._worker, self._lease_ms, now_at)
        return await greenlet_spawn(book.apply_all, tx, ops, self._own)

    async def _open(self) -> Connection:
        self._connection = await self._db.engine.open()
        return self._connection

    async def _drop(self) -> None:
        """Nobody knows what state it is in; the next batch gets another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                await connection.invalidate()
                await connection.close()


async def driver(connection: Connection) -> Any:
    """asyncpg's own connection below SQLAlchemy's, which has begun no transaction on it."""
    return (await connection.raw()).driver_connection


def _is_at_fault(error: Exception) -> bool:
    """Whether the batch itself is wrong (its values, a constraint) rather than the database away or busy."""
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "")[:2] in _AT_FAULT
    # asyncpg says DataError, which is a ValueError, where it cannot even send a value.
    return isinstance(error, ValueError) or not isinstance(
        error, asyncpg.InterfaceError | OSError | TimeoutError
    )
