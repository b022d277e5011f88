"""The ledger's batches on SQLite: one connection in one thread, since SQLite has one writer."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Container, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from infra.kit.clock import Clock
from metering_proxy import models
from metering_proxy.ledger import batch, loading
from metering_proxy.ledger.memory import Memory
from metering_proxy.ledger.ops import Answer, Op
from metering_proxy.ledger.posting import Posting, Row
from metering_proxy.ledger.statements import with_marks
from metering_proxy.ledger.stores import Away
from metering_proxy.ledger.tx import Key, Mark, Values, insert_into

# The log is copied into the file at 16 MB: batches write the same pages again and again, and each is copied once.
_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "busy_timeout=10000",
    "wal_autocheckpoint=4000",
)
_MAKE = insert_into(models.reservation)
_REROUTE = (
    "UPDATE reservation SET attempt = :attempt, provider = :provider, model = :model, price_id = :price_id,"
    " input_tokens = :input_tokens, input_cost_nanos = :input_cost_nanos,"
    " output_rate_nanos = :output_rate_nanos WHERE request_id = :request_id"
)
_RENEW = (
    "UPDATE reservation SET lease_until_at = ?, output_seen = ?"
    " WHERE request_id = ? AND state = 'dispatched'"
)
_END = "UPDATE reservation SET state = ?, ended_at = ? WHERE request_id = ?"
_MOVE = (
    "UPDATE account_window SET spent = ?, held = ? WHERE account = ? AND kind = ? AND start_at = ?"
)
_ENTER = insert_into(models.entry)
_MARK = insert_into(models.mark) + " ON CONFLICT DO NOTHING"


class _Tx:
    """Nobody else writes, and what is remembered is true: the store forgets where somebody else has written."""

    lock = ""  # BEGIN IMMEDIATE: who writes is alone

    def __init__(
        self,
        connection: sqlite3.Connection,
        memory: Memory,
        worker: str,
        lease_ms: int,
        now_at: int,
    ) -> None:
        self._connection, self._memory = connection, memory
        self.worker, self.lease_ms, self.now_at = worker, lease_ms, now_at
        self.marked: Container[Mark] = memory.marked

    def reservations(self, ids: Sequence[str], *, whole: bool) -> Iterator[dict[str, Any]]:
        known = {} if whole else self._memory.reservations
        yield from (dict(known[id]) for id in ids if id in known)
        yield from loading.reservations(self, [id for id in ids if id not in known])

    def windows(
        self, keys: Sequence[Key], made: AbstractSet[Key]
    ) -> Iterator[tuple[Key, int, int]]:
        known = self._memory.windows
        yield from ((key, *known[key]) for key in keys if key in known)
        yield from loading.windows(self, [key for key in keys if key not in known], made)

    def calls(self, accounts: Sequence[str]) -> Iterator[tuple[str, str, int]]:
        known = self._memory.calls
        for account in accounts:
            yield from ((account, *call) for call in known.get(account, {}).items())
        yield from loading.calls(self, [account for account in accounts if account not in known])

    def rows(self, sql: str, values: Values) -> Sequence[Sequence[Any]]:
        text, pick = with_marks(sql)
        return self._connection.execute(text, pick(values)).fetchall()

    def run(self, sql: str, values: Values) -> int:
        text, pick = with_marks(sql)
        return self._connection.execute(text, pick(values)).rowcount

    def post(self, posting: Posting) -> None:
        """See `Tx.post`. What the posting stands on is true: the transaction is alone."""
        self._many(_MAKE, posting.made)
        self._many(_REROUTE, posting.rerouted)
        self._rows(_RENEW, [(posting.until_at, seen, id) for id, seen in posting.renewed])
        self._rows(_END, [(state, posting.now_at, id) for id, state in posting.ended])
        self._rows(_MOVE, [(*row[5:], *row[:3]) for row in posting.moved()])
        self._many(_ENTER, posting.entries)
        self._many(_MARK, posting.marks)

    def _many(self, sql: str, rows: Sequence[Row]) -> None:
        if rows:
            text, pick = with_marks(sql)
            self._connection.executemany(text, map(pick, rows))

    def _rows(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            self._connection.executemany(sql, rows)


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
        self._memory = Memory()
        self._others = -1  # SQLite's number of what others have written
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
            self._look_for_others(connection)
            now_at = self._clock.now_at()
            tx = _Tx(connection, self._memory, self._worker, self._lease_ms, now_at)
            answers, work = batch.apply_all(tx, ops)
            connection.execute("COMMIT")
        except BaseException:
            self._memory.forget()
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        self._memory.follow(work)
        return answers

    def _look_for_others(self, connection: sqlite3.Connection) -> None:
        """Forgets what is remembered where somebody else has written to the file, whatever it was
        (https://www.sqlite.org/pragma.html#pragma_data_version)."""
        [others] = connection.execute("PRAGMA data_version").fetchone()
        if others != self._others:
            self._memory.forget()
            self._others = others

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None)
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        self._connection = connection
        return connection
