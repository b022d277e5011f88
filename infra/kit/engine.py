"""SQLAlchemy's engine on an event loop: its calls run in greenlets, from which its drivers await.

SQLAlchemy's own `ext.asyncio` does that and much more, and loads the whole ORM for it: eight megabytes in every
process, and nobody here maps objects to rows.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar, TypeVarTuple

import sqlalchemy
from sqlalchemy import URL, Dialect, Executable
from sqlalchemy.engine import CursorResult
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.util import greenlet_spawn

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Connection:
    """One connection out of the pool. `sync_connection`: SQLAlchemy's own, for use inside of `run_sync` only."""

    __slots__ = ("sync_connection",)

    def __init__(self, sync_connection: sqlalchemy.Connection) -> None:
        self.sync_connection = sync_connection

    @property
    def dialect(self) -> Dialect:
        """What it speaks."""
        return self.sync_connection.dialect

    async def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[Any]:
        """Runs a statement; all that it found has arrived."""
        return await greenlet_spawn(self.sync_connection.execute, statement, parameters)

    async def run_sync(self, work: Callable[[sqlalchemy.Connection, *Ts], T], *given: *Ts) -> T:
        """Runs a function that does not know of event loops on SQLAlchemy's own connection."""
        return await greenlet_spawn(work, self.sync_connection, *given)

    @asynccontextmanager
    async def begin(self, *, reads: bool = False) -> AsyncIterator[None]:
        """A transaction that commits when the block ends and rolls back when it raises."""
        if reads:
            self.sync_connection.execution_options(alcove_read=True)
        transaction = await greenlet_spawn(self.sync_connection.begin)
        async with _ending(transaction):
            yield

    @asynccontextmanager
    async def begin_nested(self) -> AsyncIterator[None]:
        """A savepoint: what is written inside is undone alone if it raises."""
        transaction = await greenlet_spawn(self.sync_connection.begin_nested)
        async with _ending(transaction):
            yield

    async def raw(self) -> PoolProxiedConnection:
        """What the pool gave: its `driver_connection` is the driver's."""
        return await greenlet_spawn(getattr, self.sync_connection, "connection")

    async def invalidate(self) -> None:
        """Nobody uses it again: it is thrown away when it is closed."""
        await greenlet_spawn(self.sync_connection.invalidate)

    async def close(self) -> None:
        """Gives it back to the pool, with nothing under way. Who is cancelled meanwhile is cancelled after that:
        a connection that came back later could be used by nobody, and its lock would stay."""
        closing = asyncio.create_task(greenlet_spawn(self.sync_connection.close))
        cancelled: asyncio.CancelledError | None = None
        while not closing.done():
            try:
                await asyncio.wait([closing])
            except asyncio.CancelledError as error:
                cancelled = error
        closing.result()
        if cancelled is not None:
            raise cancelled


class Engine:
    """A pool of connections. The driver that `url` names is an asynchronous one."""

    def __init__(self, url: str, **options: Any) -> None:
        self.sync_engine = sqlalchemy.create_engine(url, **options)

    @property
    def url(self) -> URL:
        """Where the database is."""
        return self.sync_engine.url

    async def open(self) -> Connection:
        """A connection, to be closed."""
        return Connection(await greenlet_spawn(self.sync_engine.connect))

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """A connection while the block runs."""
        connection = await self.open()
        try:
            yield connection
        finally:
            await connection.close()

    @asynccontextmanager
    async def begin(self, *, reads: bool = False) -> AsyncIterator[Connection]:
        """A connection in a transaction while the block runs; `reads`: it writes nothing."""
        async with self.connect() as connection, connection.begin(reads=reads):
            yield connection

    async def dispose(self) -> None:
        """Closes every connection that is not in use."""
        await greenlet_spawn(self.sync_engine.dispose)


@asynccontextmanager
async def _ending(transaction: sqlalchemy.Transaction) -> AsyncIterator[None]:
    try:
        yield
    except BaseException as error:
        await greenlet_spawn(transaction.__exit__, type(error), error, error.__traceback__)
        raise
    await greenlet_spawn(transaction.__exit__, None, None, None)
