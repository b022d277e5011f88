"""Where the ledger's batches are committed: SQLite in a thread of its own, or PostgreSQL through the pool.

A batch is one transaction with a savepoint for each operation. An operation that fails takes only itself back; a
transaction that fails is answered by an exception, and nothing of the batch has happened.
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Protocol

from sqlalchemy import Connection, TextClause, make_url, text

from infra.kit.clock import Clock, SystemClock
from infra.kit.db import Database
from metering_proxy.ledger import book
from metering_proxy.ledger.ops import Answer, Op
from metering_proxy.ledger.tx import Tx

Result = Answer | Exception


class Store(Protocol):
    """Commits batches."""

    async def apply(self, ops: Sequence[Op]) -> list[Result]:
        """One transaction; an answer (or what went wrong with that one) for each operation, in order."""
        ...

    async def close(self) -> None:
        """Lets go of its connection."""
        ...


def store(db: Database, *, worker: str, lease_s: float, clock: Clock | None) -> Store:
    """The store for this database. `clock`: instead of the database's own."""
    lease_ms = round(lease_s * 1000)
    if db.is_sqlite:
        path = make_url(db.url).database
        assert path is not None, "the ledger needs a file"
        return SqliteStore(path, worker, lease_ms, clock or SystemClock())
    return PostgresStore(db, worker, lease_ms, clock)


def _apply_all(tx: Tx, ops: Sequence[Op]) -> list[Result]:
    answers: list[Result] = []
    for op in ops:
        try:
            with tx.savepoint():
                answers.append(book.apply(tx, op))
        except Exception as error:
            answers.append(error)
    return answers


class _SqliteTx:
    def __init__(
        self, connection: sqlite3.Connection, worker: str, lease_ms: int, now_at: int
    ) -> None:
        self._connection = connection
        self.worker, self.lease_ms, self.now_at = worker, lease_ms, now_at

    def rows(self, sql: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, values: Mapping[str, Any]) -> int:
        return self._connection.execute(sql, values).rowcount

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[None]:
        self._connection.execute("SAVEPOINT op")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK TO op")
            self._connection.execute("RELEASE op")
            raise
        self._connection.execute("RELEASE op")


class SqliteStore:
    """One connection in one thread: SQLite has one writer, and a thread hop a batch is all that a call pays."""

    def __init__(self, path: str, worker: str, lease_ms: int, clock: Clock) -> None:
        self._path, self._worker, self._lease_ms, self._clock = path, worker, lease_ms, clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")
        self._connection: sqlite3.Connection | None = None

    async def apply(self, ops: Sequence[Op]) -> list[Result]:
        """See `Store.apply`."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._apply, ops)

    async def close(self) -> None:
        """See `Store.close`."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    def _apply(self, ops: Sequence[Op]) -> list[Result]:
        connection = self._connection or self._open()
        connection.execute("BEGIN IMMEDIATE")
        try:
            tx = _SqliteTx(connection, self._worker, self._lease_ms, self._clock.now_at())
            answers = _apply_all(tx, ops)
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


@lru_cache(maxsize=64)
def _text(sql: str) -> TextClause:
    return text(sql)


class _PostgresTx:
    def __init__(self, connection: Connection, worker: str, lease_ms: int, now_at: int) -> None:
        self._connection = connection
        self.worker, self.lease_ms, self.now_at = worker, lease_ms, now_at

    def rows(self, sql: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        return self._connection.execute(_text(sql), values).all()

    def run(self, sql: str, values: Mapping[str, Any]) -> int:
        return self._connection.execute(_text(sql), values).rowcount

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[None]:
        with self._connection.begin_nested():
            yield


class PostgresStore:
    """Batches over the service's own pool, several processes beside each other."""

    def __init__(self, db: Database, worker: str, lease_ms: int, clock: Clock | None) -> None:
        self._db, self._worker, self._lease_ms, self._clock = db, worker, lease_ms, clock

    async def apply(self, ops: Sequence[Op]) -> list[Result]:
        """See `Store.apply`. Accounts are locked in one order by every process."""
        order = sorted(range(len(ops)), key=lambda n: (_account(ops[n]), n))
        async with self._db.engine.begin() as connection:
            found = await connection.run_sync(self.apply_in, [ops[n] for n in order])
        answers: list[Result] = [False] * len(ops)
        for n, answer in zip(order, found, strict=True):
            answers[n] = answer
        return answers

    async def close(self) -> None:
        """See `Store.close`."""

    def apply_in(self, connection: Connection, ops: Sequence[Op]) -> list[Result]:
        """The same inside of a transaction that the caller holds open and ends."""
        now_at = self._clock.now_at() if self._clock else connection.scalar(_NOW)
        return _apply_all(_PostgresTx(connection, self._worker, self._lease_ms, now_at), ops)


_NOW = text("SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)")


def _account(op: Op) -> str:
    return getattr(op, "account", "")
