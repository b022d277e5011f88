"""One SQLite file, one connection, one thread: transactions as functions, run in the order they came.

`write` and `read` take a function of a `Tx`. It runs whole in the database's thread, so that no
await can slip into a transaction, and a caller that is cancelled never tears one in half.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from infra.kit import ids
from infra.kit.clock import Clock

T = TypeVar("T")
_MIGRATIONS = Path(__file__).parent.parent / "migrations"
_PAGES_AT_ONCE = 500  # 2 MB, some milliseconds
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Tx:
    """An open transaction: its connection, its moment, and the last event that it appended."""

    def __init__(self, connection: sqlite3.Connection, now_at: int) -> None:
        self._connection = connection
        self.now_at = now_at
        self.last_seq: int | None = None

    def run(self, sql: str, *values: object) -> sqlite3.Cursor:
        """Executes one statement."""
        return self._connection.execute(sql, values)

    def one(self, sql: str, *values: object) -> sqlite3.Row | None:
        """The first row, or None."""
        row: sqlite3.Row | None = self._connection.execute(sql, values).fetchone()
        return row

    def all(self, sql: str, *values: object) -> list[sqlite3.Row]:
        """Every row."""
        return self._connection.execute(sql, values).fetchall()


class Database:
    """The agent's database. `committed` is called in the event loop with the newest event's number."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="database")
        self._connection: sqlite3.Connection | None = None
        self._durable = False
        self._giving_back: asyncio.Task[None] | None = None
        self.committed: Callable[[int], None] = lambda seq: None

    def open(self) -> None:
        """Opens the file, brings its schema up to date and gives it an epoch.

        A write-ahead log with `synchronous=NORMAL` survives the death of the process; the machine's
        own death may lose the newest commits. So the log begins a new epoch after a reboot: numbers
        that a browser has seen must never come again with another meaning.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        connection.row_factory = sqlite3.Row
        for pragma in (
            "auto_vacuum=INCREMENTAL",  # of a new file alone, and before anything is written
            "journal_mode=WAL",
            "synchronous=NORMAL",
            "foreign_keys=ON",
            "secure_delete=ON",
            "temp_store=MEMORY",
        ):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("PRAGMA busy_timeout=5000")
        connection.execute("PRAGMA cache_size=-2000")
        _migrate(connection)
        _stamp_epoch(connection)
        self._connection = connection

    def give_back(self) -> None:
        """Lets the file shrink by what was deleted, a little at a time between everybody else's transactions.

        Returns at once. What is left when the database closes is taken for new rows.
        """
        if self._giving_back is None or self._giving_back.done():
            self._giving_back = asyncio.create_task(self._give_back(), name="give back")

    async def _give_back(self) -> None:
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(self._thread, self._free_some):
            pass

    def _free_some(self) -> bool:
        """Whether there is more to free."""
        connection = self._connection
        if connection is None:
            return False
        before = _free_pages(connection)
        connection.execute(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})").fetchall()
        after = _free_pages(connection)
        if after and after < before:
            return True
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return False

    async def close(self) -> None:
        """Waits for what is under way, then closes the file."""
        if self._giving_back is not None:
            self._giving_back.cancel()
            await asyncio.gather(self._giving_back, return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def read(self, work: Callable[[Tx], T]) -> T:
        """What `work` finds, all of it as of one moment."""
        return await self._submit(work, "BEGIN", durable=False)

    async def write(self, work: Callable[[Tx], T], *, durable: bool = False) -> T:
        """Commits what `work` does, whole or not at all.

        `durable`: the answer waits for the disk (a promise to somebody else, such as a 202).
        A cancelled caller stops waiting; the transaction still ends one way or the other.
        """
        return await self._submit(work, "BEGIN IMMEDIATE", durable=durable)

    async def _submit(self, work: Callable[[Tx], T], begin: str, *, durable: bool) -> T:
        loop = asyncio.get_running_loop()

        def transact() -> T:
            result, seq = self._transact(work, begin, durable)
            if seq is not None:
                loop.call_soon_threadsafe(self.committed, seq)
            return result

        return await asyncio.shield(loop.run_in_executor(self._thread, transact))

    def _transact(self, work: Callable[[Tx], T], begin: str, durable: bool) -> tuple[T, int | None]:
        connection = self._connection
        if connection is None:
            raise RuntimeError("the database is closed")
        if durable != self._durable:
            connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._durable = durable
        tx = Tx(connection, self._clock.now_at())
        connection.execute(begin)
        try:
            result = work(tx)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return result, tx.last_seq


def _free_pages(connection: sqlite3.Connection) -> int:
    found: int = connection.execute("PRAGMA freelist_count").fetchone()[0]
    return found


def _migrate(connection: sqlite3.Connection) -> None:
    """Runs the numbered files that this database has not seen, each in a transaction of its own."""
    done = connection.execute("PRAGMA user_version").fetchone()[0]
    for file in sorted(_MIGRATIONS.glob("[0-9][0-9][0-9][0-9].sql")):
        number = int(file.stem)
        if number > done:
            script = file.read_text()
            connection.executescript(
                f"BEGIN IMMEDIATE; {script}; PRAGMA user_version={number}; COMMIT;"
            )


def _stamp_epoch(connection: sqlite3.Connection) -> None:
    boot = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""
    kept = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    if "epoch" not in kept or kept.get("boot_id") != boot:
        connection.execute("BEGIN IMMEDIATE")
        for key, value in (("epoch", ids.ulid()), ("boot_id", boot)):
            connection.execute(
                "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value)
            )
        connection.execute("COMMIT")
