"""The ledger's batches on SQLite: one connection in one thread, since SQLite has one writer."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from infra.kit.clock import Clock
from metering_proxy.ledger import book
from metering_proxy.ledger.ops import Answer, Op
from metering_proxy.ledger.sheet import Own
from metering_proxy.ledger.statements import with_marks
from metering_proxy.ledger.stores import Away
from metering_proxy.ledger.tx import Values

# The log is copied into the file at 16 MB: batches write the same pages again and again, and each is copied once.
_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "busy_timeout=10000",
    "wal_autocheckpoint=4000",
)


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


@dataclass(slots=True)
class _Asked:
    """A batch on its way to the thread, and where its answers go. An executor's future would do, at ten times the
    cost, and a lone call pays it twice."""

    ops: Sequence[Op]
    loop: asyncio.AbstractEventLoop
    answers: asyncio.Future[list[Answer]]

    def tell(self, answers: list[Answer], error: Exception | None) -> None:
        """Called in the thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody waits
            self.loop.call_soon_threadsafe(self._told, answers, error)

    def _told(self, answers: list[Answer], error: Exception | None) -> None:
        if self.answers.done():
            return
        if error is None:
            self.answers.set_result(answers)
        else:
            self.answers.set_exception(error)


class SqliteStore:
    """See `stores.Store`. A thread hop a batch is all that a call pays for not holding up the event loop."""

    def __init__(self, path: str, worker: str, lease_ms: int, clock: Clock) -> None:
        self._path, self._worker, self._lease_ms, self._clock = path, worker, lease_ms, clock
        self._connection: sqlite3.Connection | None = None
        self._own = Own()
        self._asked: SimpleQueue[_Asked | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def apply(self, ops: Sequence[Op]) -> list[Answer]:
        """See `Store.apply`."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="ledger", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        asked = _Asked(ops, loop, loop.create_future())
        self._asked.put(asked)
        try:
            return await asked.answers
        except sqlite3.OperationalError as error:
            raise Away(str(error)) from error

    async def close(self) -> None:
        """See `Store.close`."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._asked.put(None)
            await asyncio.to_thread(thread.join)

    # -- in the thread --------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            try:
                asked.tell(self._apply(asked.ops), None)
            except Exception as error:
                asked.tell([], error)
        if self._connection is not None:
            self._connection.close()
            self._connection = None

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
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        self._connection = connection
        return connection
