"""Where the ledger's batches are committed: SQLite in a thread of its own, or PostgreSQL through the pool.

A batch is one transaction: it happens as a whole, or `apply` raises and nothing of it has happened.
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Protocol

from sqlalchemy import Connection, TextClause, make_url, text
from sqlalchemy.exc import DBAPIError

from infra.kit.clock import Clock, SystemClock
from infra.kit.db import Database
from metering_proxy.ledger import book
from metering_proxy.ledger.ops import Answer, Op
from metering_proxy.ledger.tx import Values


class Store(Protocol):
    """Commits batches."""

    async def apply(self, ops: Sequence[Op]) -> list[Answer]:
        """One transaction; an answer for each operation, in order. Raises, and has done nothing then: `Away`
        where the database could not, anything else where the operations were at fault."""
        ...

    async def close(self) -> None:
        """Lets go of its connection."""
        ...


class Away(Exception):
    """The database does not take a batch at this moment."""


def store(db: Database, *, worker: str, lease_s: float, clock: Clock | None) -> Store:
    """The store for this database. `clock`: instead of the database's own."""
    lease_ms = round(lease_s * 1000)
    if db.is_sqlite:
        path = make_url(db.url).database
        assert path is not None, "the ledger needs a file"
        return SqliteStore(path, worker, lease_ms, clock or SystemClock())
    return PostgresStore(db, worker, lease_ms, clock)


class _SqliteTx:
    lock = ""  # BEGIN IMMEDIATE: who writes is alone

    def __init__(
        self, connection: sqlite3.Connection, worker: str, lease_ms: int, now_at: int
    ) -> None:
        self._connection = connection
        self.worker, self.lease_ms, self.now_at = worker, lease_ms, now_at

    def rows(self, sql: str, values: Values) -> Sequence[Sequence[Any]]:
        return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, values: Values) -> int:
        return self._connection.execute(sql, values).rowcount

    def many(self, sql: str, values: Sequence[Values]) -> None:
        self._connection.executemany(sql, values)


class SqliteStore:
    """One connection in one thread: SQLite has one writer, and a thread hop a batch is all that a call pays."""

    def __init__(self, path: str, worker: str, lease_ms: int, clock: Clock) -> None:
        self._path, self._worker, self._lease_ms, self._clock = path, worker, lease_ms, clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")
        self._connection: sqlite3.Connection | None = None

    async def apply(self, ops: Sequence[Op]) -> list[Answer]:
        """See `Store.apply`."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, self._apply, ops)
        except sqlite3.OperationalError as error:
            raise Away(str(error)) from error

    async def close(self) -> None:
        """See `Store.close`."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    def _apply(self, ops: Sequence[Op]) -> list[Answer]:
        connection = self._connection or self._open()
        connection.execute("BEGIN IMMEDIATE")
        try:
            tx = _SqliteTx(connection, self._worker, self._lease_ms, self._clock.now_at())
            answers = book.apply_all(tx, ops)
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        return answers

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=10000"):
            connection.execute(f"PRAGMA {pragma}")
        self._connection = connection
        return connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@lru_cache(maxsize=128)
def _text(sql: str) -> TextClause:
    return text(sql)


class _PostgresTx:
    lock = " FOR UPDATE"

    def __init__(self, connection: Connection, worker: str, lease_ms: int, now_at: int) -> None:
        self._connection = connection
        self.worker, self.lease_ms, self.now_at = worker, lease_ms, now_at

    def rows(self, sql: str, values: Values) -> Sequence[Sequence[Any]]:
        return self._connection.execute(_text(sql), values).all()

    def run(self, sql: str, values: Values) -> int:
        return self._connection.execute(_text(sql), values).rowcount

    def many(self, sql: str, values: Sequence[Values]) -> None:
        self._connection.execute(_text(sql), values)


class PostgresStore:
    """Batches over the service's own pool, several processes beside each other."""

    def __init__(self, db: Database, worker: str, lease_ms: int, clock: Clock | None) -> None:
        self._db, self._worker, self._lease_ms, self._clock = db, worker, lease_ms, clock

    async def apply(self, ops: Sequence[Op]) -> list[Answer]:
        """See `Store.apply`."""
        try:
            async with self._db.engine.begin() as connection:
                return await connection.run_sync(self.apply_in, ops)
        except (DBAPIError, OSError, TimeoutError) as error:
            if _is_at_fault(error):
                raise
            raise Away(str(error)) from error

    async def close(self) -> None:
        """See `Store.close`."""

    def apply_in(self, connection: Connection, ops: Sequence[Op]) -> list[Answer]:
        """The same inside of a transaction that the caller holds open and ends."""
        now_at = self._clock.now_at() if self._clock else connection.scalar(_NOW)
        return book.apply_all(_PostgresTx(connection, self._worker, self._lease_ms, now_at), ops)


def _is_at_fault(error: Exception) -> bool:
    """Whether the batch itself is wrong (its values, a constraint) rather than the database away or busy."""
    if not isinstance(error, DBAPIError):
        return False
    state = getattr(error.orig, "sqlstate", None) or ""
    # asyncpg says ValueError where it cannot even send a value.
    return state[:2] in ("22", "23", "42") or isinstance(
        getattr(error.orig, "__cause__", None), ValueError
    )


_NOW = text("SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)")
