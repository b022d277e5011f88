"""The ledger's batches on SQLite: one connection in one thread, since SQLite has one writer."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from infra.kit.clock import Clock
from metering_proxy.ledger import book
from metering_proxy.ledger.ops import Answer, Op
from metering_proxy.ledger.sheet import Own
from metering_proxy.ledger.statements import with_marks
from metering_proxy.ledger.stores import Away
from metering_proxy.ledger.tx import Values


class _Tx:
    lock = ""  # BEGIN IMMEDIATE: who writes is alone

    def __init__(
        self, connection: sqlite3.Connection, worker: str, lease_ms: int, now_at: int
    ) -> None:
        self._connection = connection
        self.worker, self.lease_ms, self.now_at = worker, lease_ms, now_at

    def rows(self, sql: str, values: Values) -> Sequence[Sequence[Any]]:
        text, pick = with_marks(sql)
        return self._connection.execute(text, pick(values)).fetchall()

    def run(self, sql: str, values: Values) -> int:
        text, pick = with_marks(sql)
        return self._connection.execute(text, pick(values)).rowcount

    def many(self, sql: str, values: Sequence[Values]) -> None:
        text, pick = with_marks(sql)
        self._connection.executemany(text, map(pick, values))


class SqliteStore:
    """See `stores.Store`. A thread hop a batch is all that a call pays for not holding up the event loop."""

    def __init__(self, path: str, worker: str, lease_ms: int, clock: Clock) -> None:
        self._path, self._worker, self._lease_ms, self._clock = path, worker, lease_ms, clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")
        self._connection: sqlite3.Connection | None = None
        self._own = Own()

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
            tx = _Tx(connection, self._worker, self._lease_ms, self._clock.now_at())
            answers, sheet = book.apply_all(tx, ops, self._own)
            connection.execute("COMMIT")
        except BaseException:
            self._own.doubt(book.ending(ops))
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        self._own.follow(sheet)
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
