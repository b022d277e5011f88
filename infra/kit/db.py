"""One service's database: SQLite by default, PostgreSQL when the URL says so. Core, not ORM.

A transaction is opened where it can be seen, handed down, and never held across a stream or a call
to another service:

    async with db.transaction() as tx:
        await tx.execute(...)
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import Executable, text
from sqlalchemy.engine import CursorResult, RowMapping
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.sql.elements import TextClause

from infra.kit.clock import Clock, SystemClock
from infra.kit.engine import Connection, Engine
from infra.kit.errors import AlcoveError

if TYPE_CHECKING:
    from infra.kit.sqlite import Threads

log = logging.getLogger(__name__)

Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
_LAST_WORDS_S = 2.0
_PG_ALONE = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
_PG_NOW = text("SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)")


class Reading:
    """What may be asked inside a read: rows, one row, one value."""

    def __init__(self, connection: Connection, clock: Clock, own_clock: bool) -> None:
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

    async def alone(self, name: str) -> None:
        """Waits until no other transaction is past this line with that name; what is read then stays so until the
        end. SQLite has one writer at a time anyway."""
        if self.is_postgres:
            await self._connection.execute(_PG_ALONE, {"name": name})

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
        self._threads: Threads | None = None
        if self.is_sqlite:
            from infra.kit import sqlite  # with its driver and its library, of no use to PostgreSQL

            self._threads = sqlite.Threads()
            self._engine = sqlite.engine(
                self.url, self._threads, durable=durable, pool_size=pool_size
            )
        else:
            self._engine = Engine(self.url, pool_pre_ping=True, pool_size=pool_size, max_overflow=4)
        # SQLite has one writer; queueing here is fair and does not poll, its busy handler does.
        self._writer = asyncio.Lock() if self.is_sqlite else None

    @property
    def engine(self) -> Engine:
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
            async with self._engine.begin(reads=True) as connection:
                yield Reading(connection, self._clock, self._own_clock)

    async def ping(self) -> None:
        """Raises as `transaction` when the database does not answer."""
        async with self.read() as reading:
            await reading.value(text("SELECT 1"))

    async def close(self) -> None:
        """Closes every connection, and waits a moment for what was given up in the middle."""
        await self._engine.dispose()
        if self._threads is not None:
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
        why = (str(error) or type(error).__name__).splitlines()[0][:200]
        log.warning("the database does not answer", extra={"why": why})
        raise AlcoveError(
            "unavailable",
            "Our database does not answer just now. Nothing was changed.",
            reason="database",
            retry_after_s=2,
        ) from error


def _is_away(error: DBAPIError) -> bool:
    """Whether the database is at fault and not what it was asked."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        from infra.kit import sqlite

        return sqlite.is_away(code)
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


def sql(statement: str) -> TextClause:
    """A textual statement with `:named` parameters. Never built from anything a person typed."""
    return text(statement)
