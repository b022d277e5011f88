"""One service's database: SQLite by default, PostgreSQL when the URL says so. Core, not ORM.

A transaction is opened where it can be seen, handed down, and never held across a stream or a call
to another service:

    async with db.transaction() as tx:
        await tx.execute(...)

SQLite: WAL, and BEGIN IMMEDIATE for everything that writes, since a deferred transaction that
turns into a writer fails at once with SQLITE_BUSY (https://www.sqlite.org/lang_transaction.html).
"""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from threading import Thread
from typing import Any

import aiosqlite
from sqlalchemy import Executable, event, text
from sqlalchemy.engine import CursorResult, RowMapping
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.sql.elements import TextClause

from infra.kit.clock import Clock, SystemClock
from infra.kit.errors import AlcoveError

log = logging.getLogger(__name__)

Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
_SQLITE_AWAY = frozenset(
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
_LAST_WORDS_S = 2.0
_PG_NOW = text("SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)")


class Reading:
    """What may be asked inside a read: rows, one row, one value."""

    def __init__(self, connection: AsyncConnection, clock: Clock, own_clock: bool) -> None:
        self._connection = connection
        self._clock = clock
        self._own_clock = own_clock

    @property
    def is_postgres(self) -> bool:
        """Whether this is PostgreSQL (else SQLite)."""
        return self._connection.dialect.name == "postgresql"

    async def rows(
        self, statement: Executable, parameters: Parameters = None
    ) -> Sequence[RowMapping]:
        """All rows as mappings."""
        result = await self._connection.execute(statement, parameters)
        return result.mappings().all()

    async def row(self, statement: Executable, parameters: Parameters = None) -> RowMapping | None:
        """The first row as a mapping, or None."""
        result = await self._connection.execute(statement, parameters)
        return result.mappings().first()

    async def value(self, statement: Executable, parameters: Parameters = None) -> Any:
        """The first column of the first row, or None."""
        result = await self._connection.execute(statement, parameters)
        return result.scalar()

    async def now_at(self) -> int:
        """The database's clock in milliseconds: leases are compared with it and with nothing else."""
        if self.is_postgres and not self._own_clock:
            return int(await self.value(_PG_NOW))
        return self._clock.now_at()


class Transaction(Reading):
    """A transaction that may write."""

    async def execute(self, statement: Executable, parameters: Parameters = None) -> int:
        """Runs a statement; answers how many rows it matched (-1 where the driver does not know)."""
        result: CursorResult[Any] = await self._connection.execute(statement, parameters)
        return result.rowcount

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        """What is written inside is undone alone if it raises."""
        async with self._connection.begin_nested():
            yield


class Database:
    """The pool of one service. `durable` asks SQLite for synchronous=FULL (the ledger does)."""

    def __init__(
        self, url: str, *, durable: bool = False, clock: Clock | None = None, pool_size: int = 8
    ) -> None:
        self._clock = clock or SystemClock()
        self._own_clock = clock is not None
        self.url = driver_url(url)
        self.is_sqlite = self.url.startswith("sqlite")
        self._threads = _Threads()
        self._engine = _engine(self.url, durable, pool_size, self._threads)
        # SQLite has one writer; queueing here is fair and does not poll, its busy handler does.
        self._writer = asyncio.Lock() if self.is_sqlite else None

    @property
    def engine(self) -> AsyncEngine:
        """The engine, for migrations and tests."""
        return self._engine

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """A transaction that commits when the block ends and rolls back when it raises.

        Raises `unavailable` (reason `database`) where the database is away, locked or full: nothing
        of the block is kept then.
        """
        with answering():
            if self._writer is None:
                async with self._engine.begin() as connection:
                    yield Transaction(connection, self._clock, self._own_clock)
                return
            async with self._writer, self._engine.begin() as connection:
                yield Transaction(connection, self._clock, self._own_clock)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Reading]:
        """A consistent read. Raises as `transaction`."""
        with answering():
            async with self._engine.connect() as raw:
                connection = await raw.execution_options(alcove_read=True)
                async with connection.begin():
                    yield Reading(connection, self._clock, self._own_clock)

    async def ping(self) -> None:
        """Raises as `transaction` when the database does not answer."""
        async with self.read() as reading:
            await reading.value(text("SELECT 1"))

    async def close(self) -> None:
        """Closes every connection, and waits a moment for what was given up in the middle."""
        await self._engine.dispose()
        await self._threads.ended(_LAST_WORDS_S)


@contextmanager
def answering() -> Iterator[None]:
    """A database that cannot be asked is told as such; a statement that is wrong stays what it is.

    Raises `unavailable` (reason `database`).
    """
    try:
        yield
    except (DBAPIError, PoolTimeout, ConnectionError) as error:
        if isinstance(error, DBAPIError) and not _is_away(error):
            raise
        log.warning("the database does not answer", extra={"why": str(error).splitlines()[0][:200]})
        raise AlcoveError(
            "unavailable",
            "Our database does not answer just now. Nothing was changed.",
            reason="database",
            retry_after_s=2,
        ) from error


def _is_away(error: DBAPIError) -> bool:
    """Whether the database is at fault and not what it was asked (https://www.sqlite.org/rescode.html)."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF in _SQLITE_AWAY
    return error.connection_invalidated or isinstance(error, OperationalError | InterfaceError)


def driver_url(url: str) -> str:
    """The URL with the async driver named: `sqlite:///file`, `postgresql://…` are accepted short forms."""
    for short, full in (
        ("sqlite://", "sqlite+aiosqlite://"),
        ("postgresql://", "postgresql+asyncpg://"),
        ("postgres://", "postgresql+asyncpg://"),
    ):
        if url.startswith(short):
            return full + url.removeprefix(short)
    return url


class _Connection(sqlite3.Connection):
    """SQLite ends a closed connection, and its locks, only with its last statement (sqlite3_close_v2).

    A query that was cancelled leaves a statement to the garbage collector, and everybody waiting.
    """

    def close(self) -> None:
        """Gives up what is not committed, then closes."""
        with suppress(sqlite3.Error):
            self.rollback()
        super().close()


class _Threads:
    """The threads of SQLite's connections, one each.

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


def _engine(url: str, durable: bool, pool_size: int, threads: _Threads) -> AsyncEngine:
    if not url.startswith("sqlite"):
        return create_async_engine(url, pool_pre_ping=True, pool_size=pool_size, max_overflow=4)
    engine = create_async_engine(url, pool_size=pool_size)

    @event.listens_for(engine.sync_engine, "do_connect")
    def _connecting(_dialect: Any, _record: Any, _given: Any, named: dict[str, Any]) -> None:
        named["async_creator_fn"] = threads.connect

    @event.listens_for(engine.sync_engine, "connect")
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

    @event.listens_for(engine.sync_engine, "begin")
    def _began(connection: Any) -> None:
        reads = connection.get_execution_options().get("alcove_read", False)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    return engine


def sql(statement: str) -> TextClause:
    """A textual statement with `:named` parameters. Never built from anything a person typed."""
    return text(statement)
