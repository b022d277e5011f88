"""The ledger by itself, on both databases: limits that hold, one ending each, sums that agree."""

import asyncio
import random
from collections.abc import Sequence

import pytest
from sqlalchemy.exc import DBAPIError

from infra.kit.clock import FakeClock
from infra.kit.db import Database, sql
from infra.kit.errors import AlcoveError
from metering_proxy.ledger.ledger import Hold, Ledger
from metering_proxy.ledger.opening import store
from metering_proxy.ledger.ops import Answer, Op, Refused
from metering_proxy.ledger.stores import Away, Store
from metering_proxy.ledger.verify import verify
from metering_proxy.ledger.writer import Writer
from tests.metering_proxy.books import END, ask, end, hold_of, value, windows
from tests.waiting import until


async def test_settlement_turns_what_was_held_into_what_was_used_once(
    clocked: tuple[Database, Ledger],
) -> None:
    db, ledger = clocked
    hold = await hold_of(ledger, ask("a"))
    assert hold.charge_held_nanos == 2_100_000
    assert await windows(db) == {
        "charge_month": (0, 2_100_000),
        "requests_minute": (0, 1),
        "tokens_day": (0, 1_100),
    }
    assert await ledger.settle(end(hold))
    assert not await ledger.settle(end(hold))
    assert not await ledger.release(hold)
    assert await windows(db) == {
        "charge_month": (70_000, 0),
        "requests_minute": (1, 0),
        "tokens_day": (60, 0),
    }
    assert await value(db, "SELECT count(*) FROM entry") == 1
    assert await value(db, "SELECT count(*) FROM reservation WHERE state = 'dispatched'") == 0
    assert (await verify(db)).whole


async def test_release_charges_nothing(clocked: tuple[Database, Ledger]) -> None:
    db, ledger = clocked
    hold = await hold_of(ledger, ask("a"))
    assert await ledger.release(hold)
    assert not await ledger.settle(end(hold))
    assert set((await windows(db)).values()) == {(0, 0)}
    assert await value(db, "SELECT count(*) FROM entry") == 0


async def test_refusal_leaves_nothing_behind(clocked: tuple[Database, Ledger]) -> None:
    db, ledger = clocked
    first = await hold_of(ledger, ask("a", limit=3_000_000))
    answer = await ledger.reserve(ask("a", limit=2_500_000))
    assert answer == Refused("charge_month", "charge", END, 2_500_000)
    await ledger.release(first)
    first = await hold_of(ledger, ask("a", concurrent=1))
    assert await ledger.reserve(ask("a", concurrent=1)) == Refused(
        "concurrent_calls", "concurrent", None, 1
    )
    await ledger.release(first)
    assert {held for _, held in (await windows(db)).values()} == {0}
    assert await value(db, "SELECT count(*) FROM reservation") == 2


async def test_two_hundred_at_once_over_two_processes_never_overspend(
    clocked: tuple[Database, Ledger], clock: FakeClock
) -> None:
    db, ledger = clocked
    other_db = Database(db.url, durable=True, clock=clock)
    other = Ledger(other_db, lease_s=60, clock=clock)
    other.start()
    limit = 20_000_000
    chance = random.Random(7)

    async def one(n: int) -> int:
        mine = (ledger, other)[n % 2]
        hold = await mine.reserve(ask("a", limit=limit, wanted=chance.randint(256, 1_000)))
        if isinstance(hold, Refused):
            return 0
        output = chance.randint(0, hold.limit)
        await asyncio.gather(mine.settle(end(hold, output)), mine.settle(end(hold, output)))
        return 1

    done = sum(await asyncio.gather(*(one(n) for n in range(200))))
    await other.close()
    await other_db.close()
    spent, held = (await windows(db))["charge_month"]
    assert done > 5
    assert 0 < spent <= limit
    assert held == 0
    assert await value(db, "SELECT count(*) FROM entry") == done
    assert (await verify(db)).whole


async def test_token_limit_is_lowered_to_what_running_calls_leave(
    clocked: tuple[Database, Ledger],
) -> None:
    _, ledger = clocked
    limit = 2_100_000 + 100_000 + 650 * 2_000 + 1_999
    assert (await hold_of(ledger, ask("a", limit=limit))).limit == 1_000
    assert (await hold_of(ledger, ask("a", limit=limit))).limit == 650
    assert isinstance(await ledger.reserve(ask("a", limit=limit)), Refused)


@pytest.mark.parametrize("change", ["UPDATE entry SET charge_nanos = 0", "DELETE FROM entry"])
async def test_entries_cannot_be_changed(clocked: tuple[Database, Ledger], change: str) -> None:
    db, ledger = clocked
    hold = await hold_of(ledger, ask("a"))
    await ledger.settle(end(hold))
    with pytest.raises(DBAPIError, match="append-only"):
        async with db.transaction() as tx:
            await tx.execute(sql(change))


async def test_proof_sees_a_sum_that_was_touched(clocked: tuple[Database, Ledger]) -> None:
    db, ledger = clocked
    hold = await hold_of(ledger, ask("a"))
    await ledger.settle(end(hold))
    await hold_of(ledger, ask("b"))
    assert (await verify(db)).whole
    async with db.transaction() as tx:
        await tx.execute(sql("UPDATE account_window SET spent = spent + 3 WHERE account = 'a'"))
        await tx.execute(sql("UPDATE account_window SET held = held + 5 WHERE account = 'b'"))
    verdict = await verify(db)
    assert verdict.drift_nanos == 3
    assert verdict.held_nanos == 15
    assert not verdict.whole


class _Failing:
    """A store that fails so many batches, then works."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.applied: list[Op] = []

    async def apply(self, ops: Sequence[Op]) -> list[Answer]:
        if self.failures:
            self.failures -= 1
            raise Away("the disk is full")
        self.applied += ops
        return [True] * len(ops)

    async def close(self) -> None:
        return


async def test_writer_refuses_holds_and_keeps_settlements_while_the_database_is_away() -> None:
    store = _Failing(2)
    writer = Writer(store)
    writer.start()
    settle = end(Hold("x", 1, 1))
    settled = writer.submit(settle)
    reserved = writer.submit(ask("a"))
    with pytest.raises(AlcoveError) as caught:
        await reserved
    assert (caught.value.code, caught.value.reason) == ("unavailable", "ledger")
    assert await settled
    assert store.applied == [settle]
    await writer.close()
    with pytest.raises(AlcoveError):
        await writer.submit(settle)


class _Batches:
    """A store that writes its batches down."""

    def __init__(self) -> None:
        self.applied: list[list[Op]] = []

    async def apply(self, ops: Sequence[Op]) -> list[Answer]:
        self.applied.append([*ops])
        return [True] * len(ops)

    async def close(self) -> None:
        return


async def test_settlement_is_committed_with_the_next_hold_or_else_soon() -> None:
    store = _Batches()
    writer = Writer(store)
    writer.start()
    first, reserve, last = end(Hold("x", 1, 1)), ask("a"), end(Hold("y", 1, 1))
    settled = writer.submit(first)
    for _ in range(10):
        await asyncio.sleep(0)  # time enough for a writer that would not wait
    assert await writer.submit(reserve)
    assert settled.done()
    assert await writer.submit(last)
    assert store.applied == [[first, reserve], [last]]
    many = [end(Hold(f"z{n}", 1, 1)) for n in range(500)]
    await asyncio.gather(*map(writer.submit, many))
    assert [op for batch in store.applied[2:] for op in batch] == many
    await writer.close()


async def test_hold_whose_caller_left_meanwhile_is_given_back(
    clocked: tuple[Database, Ledger],
) -> None:
    db, ledger = clocked
    asking = asyncio.create_task(ledger.reserve(ask("a")))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    async def released() -> bool:
        return await value(db, "SELECT count(*) FROM reservation WHERE state = 'released'") == 1

    await until(released)
    assert {held for _, held in (await windows(db)).values()} == {0}


class _LeavesAtTheLastMoment:
    """A store whose caller is cancelled between the commit and the news of it."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.caller: asyncio.Task[object] | None = None

    async def apply(self, ops: Sequence[Op]) -> list[Answer]:
        answers = await self.inner.apply(ops)
        if self.caller is not None:
            asyncio.get_running_loop().call_soon(self.caller.cancel)
        return answers

    async def close(self) -> None:
        await self.inner.close()


async def test_hold_whose_caller_left_before_hearing_of_it_is_given_back(
    clocked: tuple[Database, Ledger], clock: FakeClock
) -> None:
    db, _ = clocked
    leaving = _LeavesAtTheLastMoment(store(db, worker="w", lease_s=60, clock=clock))
    ledger = Ledger(db, writer=Writer(leaving))
    ledger.start()
    leaving.caller = asyncio.create_task(ledger.reserve(ask("a")))
    with pytest.raises(asyncio.CancelledError):
        await leaving.caller
    leaving.caller = None

    async def released() -> bool:
        return await value(db, "SELECT count(*) FROM reservation WHERE state = 'released'") == 1

    await until(released)
    await ledger.close()
