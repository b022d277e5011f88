"""SQLite beneath db.py: how its connections are opened, begun and closed, and which failures are its own.

WAL, and BEGIN IMMEDIATE for everything that writes, since a deferred transaction that turns into a
writer fails at once with SQLITE_BUSY (https://www.sqlite.org/lang_transaction.html).
"""

import asyncio
import sqlite3
from contextlib import suppress
from threading import Thread
from typing import Any

import aiosqlite
from sqlalchemy import event

from infra.kit.engine import Engine

_AWAY = frozenset(
    (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
    )
)


def is_away(code: int) -> bool:
    """Whether a result code says that the database is at fault and not what it was asked
    (https://www.sqlite.org/rescode.html)."""
    return code & 0xFF in _AWAY


class _Connection(sqlite3.Connection):
    """SQLite ends a closed connection, and its locks, only with its last statement (sqlite3_close_v2).

    A query that was cancelled leaves a statement to the garbage collector, and everybody waiting.
    """

    def close(self) -> None:
        """Gives up what is not committed, then closes."""
        with suppress(sqlite3.Error):
            self.rollback()
        super().close()


class Threads:
    """The threads of a pool's connections, one each.

    A connection whose query was cancelled leaves its thread at work, and that would give its answer to
    an event loop that has ended.
    """

    def __init__(self) -> None:
        self._threads: set[Thread] = set()

    def connect(self, *given: Any, **named: Any) -> aiosqlite.Connection:
        """A connection, not yet begun."""
        made = aiosqlite.connect(*given, factory=_Connection, **named)
        thread = made._thread
        thread.daemon = True
        # Without `ident` it has not begun yet.
        alive = {one for one in self._threads if one.is_alive() or one.ident is None}
        self._threads = alive | {thread}
        return made

    async def ended(self, within_s: float) -> None:
        """Returns when no thread has anything more to say, or after `within_s`."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + within_s
        # Asked again and again: a thread tells no loop that it ends.
        while any(one.is_alive() for one in self._threads) and loop.time() < deadline_s:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def engine(url: str, threads: Threads, *, durable: bool, pool_size: int) -> Engine:
    """A pool whose transactions may write unless their connection has the option `alcove_read`."""
    made = Engine(url, pool_size=pool_size)

    @event.listens_for(made.sync_engine, "do_connect")
    def _connecting(_dialect: Any, _record: Any, _given: Any, named: dict[str, Any]) -> None:
        named["async_creator_fn"] = threads.connect

    @event.listens_for(made.sync_engine, "connect")
    def _connected(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions begin where "begin" below says so
        cursor = connection.cursor()
        for pragma in (
            "journal_mode=WAL",
            f"synchronous={'FULL' if durable else 'NORMAL'}",
            "busy_timeout=10000",
            "foreign_keys=ON",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(made.sync_engine, "begin")
    def _began(connection: Any) -> None:
        reads = connection.get_execution_options().get("alcove_read", False)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    return made
