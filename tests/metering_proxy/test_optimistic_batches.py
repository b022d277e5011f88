"""What a ledger remembers instead of asking, while another process writes to the same database."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from infra.kit.clock import FakeClock
from infra.kit.db import Database
from metering_proxy.ledger.ledger import Hold, Ledger
from metering_proxy.ledger.memory import Memory
from metering_proxy.ledger.on_postgres import PostgresStore, driver
from metering_proxy.ledger.opening import store
from metering_proxy.ledger.ops import Answer, Op, Refused, Renew, Reserve, Reserved, Settle, Sweep
from metering_proxy.ledger.optimistic import OptimisticTx
from metering_proxy.ledger.stores import Store
from metering_proxy.ledger.unit_of_work import UnitOfWork
from metering_proxy.ledger.verify import verify
from tests.databases import to_head
from tests.metering_proxy.books import ask, end, hold_of, value, windows
from tests.waiting import until

_ONE = 2_100_000  # what one call of `ask` holds


@pytest.fixture
async def two(
    clocked: tuple[Database, Ledger], clock: FakeClock
) -> AsyncIterator[tuple[Store, Store]]:
    """Two processes' stores on one database."""
    db, _ = clocked
    stores = [store(db, worker=name, lease_s=60, clock=clock) for name in ("one", "other")]
    yield stores[0], stores[1]
    for each in stores:
        await each.close()


async def _answer(books: Store, op: Op) -> Answer:
    [answer] = await books.apply([op])
    return answer


def _end(op: Reserve) -> Settle:
    return end(Hold(op.request_id, 1, 1))


async def test_spending_of_another_process_counts(
    clocked: tuple[Database, Ledger], two: tuple[Store, Store]
) -> None:
    db, _ = clocked
    one, other = two
    limit = 3 * _ONE
    mine = ask("a", limit=limit)
    assert isinstance(await _answer(one, mine), Reserved)
    for _ in range(2):
        assert isinstance(await _answer(other, ask("a", limit=limit)), Reserved)
    assert isinstance(await _answer(one, ask("a", limit=limit)), Refused)
    assert await _answer(one, _end(mine))
    assert (await windows(db))["charge_month"] == (70_000, 2 * _ONE)
    assert (await verify(db)).whole


async def test_spending_of_a_former_process_counts(
    clocked: tuple[Database, Ledger], two: tuple[Store, Store]
) -> None:
    db, _ = clocked
    one, other = two
    op = ask("a", limit=_ONE)
    assert isinstance(await _answer(one, op), Reserved)
    assert await _answer(one, _end(op))
    hold = await _answer(other, ask("a", limit=_ONE))
    assert isinstance(hold, Reserved)
    assert hold.limit == 965  # of 1,000: what is left
    assert (await windows(db))["charge_month"] == (70_000, _ONE - 70_000)
    assert (await verify(db)).whole


async def test_calls_of_another_process_count(two: tuple[Store, Store]) -> None:
    one, other = two
    first = ask("a", concurrent=2)
    assert isinstance(await _answer(one, first), Reserved)
    assert isinstance(await _answer(other, ask("a", concurrent=2)), Reserved)
    assert isinstance(await _answer(one, ask("a", concurrent=2)), Refused)
    assert await _answer(one, _end(first))
    assert isinstance(await _answer(other, ask("a", concurrent=2)), Reserved)


async def test_call_that_another_process_keeps_alive_counts(
    two: tuple[Store, Store], clock: FakeClock
) -> None:
    one, other = two
    op = ask("a", concurrent=1)
    assert isinstance(await _answer(other, op), Reserved)
    assert isinstance(await _answer(one, ask("a", concurrent=1)), Refused)  # and has seen it
    clock.advance(50)
    await _answer(other, Renew(((op.request_id, 0),)))
    clock.advance(50)
    assert isinstance(await _answer(one, ask("a", concurrent=1)), Refused)
    clock.advance(50)
    assert isinstance(await _answer(one, ask("a", concurrent=1)), Reserved)


async def test_call_that_this_process_keeps_alive_counts(
    two: tuple[Store, Store], clock: FakeClock
) -> None:
    one, _ = two
    op = ask("a", concurrent=1)
    assert isinstance(await _answer(one, op), Reserved)
    clock.advance(50)
    await _answer(one, Renew(((op.request_id, 0),)))
    clock.advance(50)
    assert isinstance(await _answer(one, ask("a", concurrent=1)), Refused)


async def test_call_that_another_process_has_swept_is_settled_as_late_usage(
    clocked: tuple[Database, Ledger], two: tuple[Store, Store], clock: FakeClock
) -> None:
    db, _ = clocked
    one, other = two
    op = ask("a")
    assert isinstance(await _answer(one, op), Reserved)
    clock.advance(61)
    await _answer(other, Sweep())
    assert await value(db, "SELECT state FROM reservation") == "charged_estimate"
    assert await _answer(one, _end(op))
    assert not await _answer(one, _end(op))
    assert (await windows(db))["charge_month"] == (70_000, 0)
    assert (await verify(db)).whole


@asynccontextmanager
async def _holding(db: Database, clock: FakeClock, ops: Sequence[Op]) -> AsyncIterator[Answer]:
    """Another process that has done `ops` and commits when the block ends; its first answer."""
    async with db.engine.connect() as connection:
        raw = await driver(connection)
        async with raw.transaction():
            answers, _ = await PostgresStore(db, "other", 60_000, clock).apply_in(raw, ops)
            yield answers[0]


@pytest.fixture
async def postgres(postgres_url: str, clock: FakeClock) -> AsyncIterator[Database]:
    """A migrated PostgreSQL, and on it an account whose windows are there."""
    db = Database(postgres_url, clock=clock)
    await to_head(db, "metering_proxy")
    ledger = Ledger(db, clock=clock)
    ledger.start()
    await ledger.release(await hold_of(ledger, ask("a")))
    yield db
    await ledger.close()
    await db.close()


async def _waits(db: Database) -> None:
    """Returns once somebody stands before a lock."""

    async def stands() -> bool:
        return await value(db, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 1

    await until(stands, what="this process at the other one's lock")


async def _guessing(books: PostgresStore, raw: Any, op: Op) -> Answer | None:
    answers = await books.apply_optimistically(raw, [op])
    return answers[0] if answers else None


async def _asking(books: PostgresStore, raw: Any, op: Op) -> Answer | None:
    async with raw.transaction():
        answers, _ = await books.apply_in(raw, [op])
    return answers[0]


@pytest.mark.postgres
@pytest.mark.parametrize("how", [_guessing, _asking])
async def test_limit_holds_when_another_process_takes_the_rest_meanwhile(
    postgres: Database, clock: FakeClock, how: Any
) -> None:
    books = PostgresStore(postgres, "this", 60_000, clock)
    theirs, ours = (replace(ask("a", limit=_ONE), concurrent=None) for _ in range(2))
    async with postgres.engine.connect() as connection:
        raw = await driver(connection)
        async with _holding(postgres, clock, [theirs]) as held:
            assert isinstance(held, Reserved)
            asking = asyncio.create_task(how(books, raw, ours))
            await _waits(postgres)
        answer = await asking
    assert answer is None or isinstance(answer, Refused)
    assert (await windows(postgres))["charge_month"] == (0, _ONE)
    assert (await verify(postgres)).whole


@pytest.mark.postgres
@pytest.mark.parametrize("how", [_guessing, _asking])
async def test_settlements_of_two_processes_add_up(
    postgres: Database, clock: FakeClock, how: Any
) -> None:
    theirs, ours = ask("a"), ask("a")
    books = PostgresStore(postgres, "this", 60_000, clock)
    await books.apply([theirs, ours])
    async with postgres.engine.connect() as connection:
        raw = await driver(connection)
        async with _holding(postgres, clock, [_end(theirs)]) as settled:
            assert settled is True
            asking = asyncio.create_task(how(books, raw, _end(ours)))
            await _waits(postgres)
        if await asking is None:
            assert await books.apply([_end(ours)]) == [True]
    assert (await windows(postgres))["charge_month"] == (140_000, 0)
    assert (await verify(postgres)).whole
    await books.close()


@pytest.mark.postgres
async def test_batch_is_one_statement_once_its_accounts_are_known(
    postgres: Database, clock: FakeClock
) -> None:
    books = PostgresStore(postgres, "this", 60_000, clock)
    ops = [ask("a"), ask("b")]
    await books.apply(ops)
    async with postgres.engine.connect() as connection:
        raw = await driver(connection)
        assert await books.apply_optimistically(
            raw, [Renew(())]
        )  # the driver asks for types, once a connection
        said: list[str] = []
        raw.add_query_logger(lambda told: said.append(told.query))
        renewal = Renew(((ops[0].request_id, 1),))
        answers = await books.apply_optimistically(raw, [*map(_end, ops), ask("a"), renewal])
    assert answers is not None
    assert len(said) == 1
    await books.close()
    assert (await verify(postgres)).whole


@pytest.mark.postgres
async def test_lease_begins_by_the_databases_clock_although_ours_has_leapt(
    postgres: Database,
) -> None:
    hands = FakeClock()
    books = PostgresStore(postgres, "this", 60_000, None, hands.monotonic_s)
    await books.apply([ask("a")])
    hands.advance(3_600)
    await books.apply([ask("a")])
    after_a_minute = "lease_until_at > extract(epoch FROM clock_timestamp()) * 1000 + 60001"
    assert await value(postgres, f"SELECT count(*) FROM reservation WHERE {after_a_minute}") == 0
    await books.close()


def test_memory_forgets_what_was_used_longest_ago() -> None:
    memory = Memory()
    month = ("a", "charge_month", 0)
    for n in range(10_000):
        work = UnitOfWork(OptimisticTx(memory, "this", 60_000, 0))
        work.load((), [("a", "requests_minute", n), month], ())
        work.made_window(month).spent = n
        memory.follow(work)
    assert 1_000 < len(memory.windows) < 10_000
    assert memory.windows[month] == (9_999, 0)
    assert ("a", "requests_minute", 9_999) in memory.windows
    assert ("a", "requests_minute", 0) not in memory.windows
