"""The database layer on SQLite and on PostgreSQL: nothing written is lost, nothing half-written stays."""

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from infra.kit.clock import FakeClock
from infra.kit.db import Database, answering, driver_url, sql
from infra.kit.errors import AlcoveError
from tests.kit.processes import at_once
from tests.waiting import until

PROCESSES, INCREMENTS = 4, 200


async def make_counter(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute(sql("CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)"))
        await tx.execute(sql("INSERT INTO counter VALUES (1, 0)"))


async def counted(db: Database) -> int:
    async with db.read() as reading:
        return int(await reading.value(sql("SELECT n FROM counter WHERE id = 1")))


def increment_in_process(url: str) -> None:
    """Reads, then writes what it read plus one: a deferred or unlocked transaction loses increments."""

    async def run() -> None:
        db = Database(url)
        lock = "" if db.is_sqlite else " FOR UPDATE"
        for _ in range(INCREMENTS):
            async with db.transaction() as tx:
                n = await tx.value(sql(f"SELECT n FROM counter WHERE id = 1{lock}"))
                await tx.execute(sql("UPDATE counter SET n = :n WHERE id = 1"), {"n": n + 1})
        await db.close()

    asyncio.run(run())


@pytest.mark.thorough
async def test_no_increment_is_lost_when_four_processes_write(db: Database) -> None:
    await make_counter(db)
    url = db.engine.url.render_as_string(hide_password=False)
    assert await at_once(increment_in_process, url, count=PROCESSES) == [0] * PROCESSES
    assert await counted(db) == PROCESSES * INCREMENTS


async def test_no_other_process_begins_to_write_when_a_transaction_is_open(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path}/one.db")
    await make_counter(db)
    with closing(sqlite3.connect(tmp_path / "one.db", timeout=0, isolation_level=None)) as other:
        async with db.transaction():
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
        async with db.read():
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")
    await db.close()


async def test_no_increment_is_lost_when_tasks_of_one_pool_write(db: Database) -> None:
    await make_counter(db)

    async def increment() -> None:
        async with db.transaction() as tx:
            await tx.execute(sql("UPDATE counter SET n = n + 1 WHERE id = 1"))

    await asyncio.gather(*(increment() for _ in range(50)))
    assert await counted(db) == 50


async def test_transaction_is_undone_when_its_block_raises(db: Database) -> None:
    await make_counter(db)
    with pytest.raises(RuntimeError):
        async with db.transaction() as tx:
            await tx.execute(sql("UPDATE counter SET n = 7 WHERE id = 1"))
            raise RuntimeError
    assert await counted(db) == 0


async def test_savepoint_is_undone_alone_when_it_raises(db: Database) -> None:
    await make_counter(db)
    async with db.transaction() as tx:
        await tx.execute(sql("UPDATE counter SET n = 1 WHERE id = 1"))
        with pytest.raises(RuntimeError):
            async with tx.savepoint():
                await tx.execute(sql("UPDATE counter SET n = 99 WHERE id = 1"))
                raise RuntimeError
        async with tx.savepoint():
            await tx.execute(sql("UPDATE counter SET n = n + 1 WHERE id = 1"))
    assert await counted(db) == 2


async def test_transaction_is_alone_from_its_line_on_with_those_of_its_name(db: Database) -> None:
    await make_counter(db)

    async def add() -> None:
        """Reads, and writes what it read plus one: side by side, some would be lost."""
        async with db.transaction() as tx:
            await tx.alone("counter")
            n = await tx.value(sql("SELECT n FROM counter WHERE id = 1"))
            await tx.execute(sql("UPDATE counter SET n = :n WHERE id = 1"), {"n": n + 1})

    await asyncio.gather(*(add() for _ in range(40)))
    assert await counted(db) == 40


async def test_transaction_is_undone_when_its_task_is_cancelled(db: Database) -> None:
    await make_counter(db)
    inside = asyncio.Event()

    async def write_and_hang() -> None:
        async with db.transaction() as tx:
            await tx.execute(sql("UPDATE counter SET n = 7 WHERE id = 1"))
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(write_and_hang())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await make_sure_writable(db)
    assert await counted(db) == 0


async def make_sure_writable(db: Database) -> None:
    async with asyncio.timeout(5), db.transaction() as tx:
        await tx.execute(sql("UPDATE counter SET n = n WHERE id = 1"))


async def test_read_is_consistent_when_a_writer_commits_meanwhile(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path}/one.db")
    await make_counter(db)
    async with db.read() as reading:
        before = await reading.value(sql("SELECT n FROM counter"))
        async with db.transaction() as tx:
            await tx.execute(sql("UPDATE counter SET n = 5"))
        assert await reading.value(sql("SELECT n FROM counter")) == before == 0
    assert await counted(db) == 5
    await db.close()


async def test_execute_answers_how_many_rows_matched_when_it_updates(db: Database) -> None:
    await make_counter(db)
    async with db.transaction() as tx:
        hit = sql("UPDATE counter SET n = 1 WHERE n < :limit")
        assert await tx.execute(hit, {"limit": 1}) == 1
        assert await tx.execute(hit, {"limit": 1}) == 0


async def test_now_at_is_the_given_clock_when_one_was_given(database_url: str) -> None:
    clock = FakeClock()
    db = Database(database_url, clock=clock)
    async with db.read() as reading:
        assert await reading.now_at() == clock.now_at()
        clock.advance(1.5)
        assert await reading.now_at() == clock.now_at()
    await db.close()


@pytest.mark.parametrize(("durable", "synchronous"), [(True, 2), (False, 1)])
async def test_sqlite_is_as_durable_as_asked_when_opened(
    tmp_path: Path, durable: bool, synchronous: int
) -> None:
    db = Database(f"sqlite:///{tmp_path}/one.db", durable=durable)
    async with db.read() as reading:
        assert await reading.value(sql("PRAGMA synchronous")) == synchronous
        assert await reading.value(sql("PRAGMA journal_mode")) == "wal"
        assert await reading.value(sql("PRAGMA foreign_keys")) == 1
    await db.close()


@pytest.mark.parametrize(
    ("given", "full"),
    [
        ("sqlite:////d/a.db", "sqlite+aiosqlite:////d/a.db"),
        ("postgres://u:p@h/d", "postgresql+asyncpg://u:p@h/d"),
        ("postgresql://u:p@h/d", "postgresql+asyncpg://u:p@h/d"),
        ("postgresql+asyncpg://u:p@h/d", "postgresql+asyncpg://u:p@h/d"),
    ],
)
def test_driver_is_named_when_the_url_is_short(given: str, full: str) -> None:
    assert driver_url(given) == full


@pytest.mark.parametrize("url", ["sqlite:////nowhere/at/all.db", "postgresql://127.0.0.1:1/none"])
async def test_database_is_unavailable_when_it_is_away(url: str) -> None:
    db = Database(url)
    for opened in (db.read, db.transaction):
        with pytest.raises(AlcoveError) as caught:
            async with opened() as tx:
                await tx.value(sql("SELECT 1"))
        assert (caught.value.code, caught.value.reason) == ("unavailable", "database")
    await db.close()


def test_database_is_unavailable_when_its_connection_ends_without_a_word() -> None:
    with pytest.raises(AlcoveError, match="does not answer"), answering():
        raise ConnectionResetError


async def test_database_is_unavailable_and_keeps_nothing_when_it_is_full(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path}/full.db")
    await make_counter(db)
    with pytest.raises(AlcoveError) as caught:
        async with db.transaction() as tx:
            await tx.execute(sql("UPDATE counter SET n = 7"))
            await tx.execute(sql("PRAGMA max_page_count = 1"))
            await tx.execute(sql("CREATE TABLE much (t)"))
            await tx.execute(sql("INSERT INTO much VALUES (zeroblob(1000000))"))
    assert (caught.value.code, caught.value.reason) == ("unavailable", "database")
    assert await counted(db) == 0
    await db.close()


async def test_error_stays_what_it_is_when_the_statement_is_wrong(db: Database) -> None:
    with pytest.raises(DBAPIError, match="nowhere"):
        async with db.read() as reading:
            await reading.value(sql("SELECT * FROM nowhere"))


async def test_no_thread_is_left_when_the_pool_closes_after_a_query_was_given_up(
    tmp_path: Path,
) -> None:
    db = Database(f"sqlite:///{tmp_path}/one.db")
    before = set(threading.enumerate())
    counting = sql(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)"
        " SELECT count(*) FROM n"
    )

    async def ask() -> None:
        async with db.read() as reading:
            await reading.value(counting)

    asking = asyncio.create_task(ask())
    await until(lambda: set(threading.enumerate()) - before)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await db.close()
    assert not set(threading.enumerate()) - before


async def test_lock_goes_with_its_connection_when_a_statement_stays(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/s.db")
    pooled = await (await database.engine.open()).raw()
    driver = pooled.driver_connection
    assert driver is not None
    for statement in ("CREATE TABLE t (a)", "BEGIN IMMEDIATE", "INSERT INTO t VALUES (1), (2)"):
        await driver.execute(statement)
    kept = await driver.execute("SELECT a FROM t")  # its rows are not read: it lives
    await driver.close()
    with sqlite3.connect(tmp_path / "s.db", timeout=0) as other:
        other.execute("INSERT INTO t VALUES (3)")
        assert other.execute("SELECT a FROM t").fetchall() == [(3,)]
    assert kept is not None
    pooled.invalidate()
    await database.close()
