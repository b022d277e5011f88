"""The ledger by itself, on both databases: one ending each, sums that agree, nothing freed in silence."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence

import pytest
from sqlalchemy.exc import DBAPIError

from infra.kit import ids, migrate
from infra.kit.clock import FakeClock
from infra.kit.db import Database, sql
from infra.kit.errors import AlcoveError
from metering_proxy.ledger.endings import RENEWAL_TOKENS
from metering_proxy.ledger.ledger import Hold, Ledger
from metering_proxy.ledger.ops import Op, Refused, Reserve, Settle, Window
from metering_proxy.ledger.stores import Result
from metering_proxy.ledger.verify import verify
from metering_proxy.ledger.writer import Writer
from metering_proxy.pricing import Bound, Usage
from tests.waiting import until

_MONTH = 1_767_225_600_000
_END = _MONTH + 31 * 86_400_000


def _ask(
    account: str, *, limit: int = 10**9, wanted: int = 1_000, concurrent: int = 100
) -> Reserve:
    """A request of 100 input tokens at 1,000 and `wanted` output tokens at 2,000 nano-USD."""
    return Reserve(
        request_id=ids.ulid(),
        account=account,
        wire="openai_chat",
        provider="p",
        model="p/m",
        price_id="p/m@1",
        payer="operator",
        started_at=_MONTH + 5,
        month_start_at=_MONTH,
        windows=(
            Window("charge_month", "charge", _MONTH, _END, limit),
            Window("requests_minute", "requests", _MONTH, _MONTH + 60_000, 1_000),
            Window("tokens_day", "tokens", _MONTH, _MONTH + 86_400_000, 10**9),
        ),
        concurrent=concurrent,
        bound=Bound(100, 100_000, 2_000, 1, 0),
        wanted=wanted,
        floor=256,
        input_tokens=30,
        input_cost_nanos=30_000,
        output_rate_nanos=2_000_000_000,
        markup_ppm=0,
    )


def _end(hold: Hold, output: int = 10) -> Settle:
    charge = 50 * 1_000 + output * 2_000
    return Settle(
        hold.request_id, Usage(input=50, output=output), charge, charge, "complete", False
    )


@pytest.fixture
async def clocked(database_url: str, clock: FakeClock) -> AsyncIterator[tuple[Database, Ledger]]:
    """A migrated database and a started ledger that lives by the test's clock."""
    db = Database(database_url, durable=True, clock=clock)
    await migrate.upgrade(db, "metering_proxy")
    ledger = Ledger(db, lease_s=60, clock=clock)
    ledger.start()
    yield db, ledger
    await ledger.close()
    await db.close()


async def _hold(ledger: Ledger, ask: Reserve) -> Hold:
    hold = await ledger.reserve(ask)
    assert isinstance(hold, Hold)
    return hold


async def _windows(db: Database) -> dict[str, tuple[int, int]]:
    async with db.read() as reading:
        rows = await reading.rows(sql("SELECT kind, spent, held FROM account_window"))
    return {row["kind"]: (row["spent"], row["held"]) for row in rows}


async def _value(db: Database, statement: str) -> object:
    async with db.read() as reading:
        return await reading.value(sql(statement))


async def test_settlement_turns_what_was_held_into_what_was_used_once(
    clocked: tuple[Database, Ledger],
) -> None:
    db, ledger = clocked
    hold = await _hold(ledger, _ask("a"))
    assert hold.charge_held_nanos == 2_100_000
    assert await _windows(db) == {
        "charge_month": (0, 2_100_000),
        "requests_minute": (0, 1),
        "tokens_day": (0, 1_100),
    }
    assert await ledger.dispatch(hold)
    assert await ledger.settle(_end(hold))
    assert not await ledger.settle(_end(hold))
    assert not await ledger.release(hold)
    assert await _windows(db) == {
        "charge_month": (70_000, 0),
        "requests_minute": (1, 0),
        "tokens_day": (60, 0),
    }
    assert await _value(db, "SELECT count(*) FROM entry") == 1
    assert await _value(db, "SELECT count(*) FROM slot") == 0
    assert (await verify(db)).whole


async def test_release_charges_nothing(clocked: tuple[Database, Ledger]) -> None:
    db, ledger = clocked
    hold = await _hold(ledger, _ask("a"))
    assert await ledger.release(hold)
    assert not await ledger.settle(_end(hold))
    assert set((await _windows(db)).values()) == {(0, 0)}
    assert await _value(db, "SELECT count(*) FROM entry") == 0


async def test_refusal_leaves_nothing_behind(clocked: tuple[Database, Ledger]) -> None:
    db, ledger = clocked
    answer = await ledger.reserve(_ask("a", limit=500_000))
    assert answer == Refused("charge_month", "charge", _END, 500_000)
    first = await _hold(ledger, _ask("a", concurrent=1))
    assert await ledger.reserve(_ask("a", concurrent=1)) == Refused(
        "concurrent_calls", "concurrent", None, 1
    )
    await ledger.release(first)
    assert {held for _, held in (await _windows(db)).values()} == {0}
    assert await _value(db, "SELECT count(*) FROM reservation") == 1


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
        hold = await mine.reserve(_ask("a", limit=limit, wanted=chance.randint(256, 1_000)))
        if isinstance(hold, Refused):
            return 0
        await mine.dispatch(hold)
        output = chance.randint(0, hold.limit)
        await asyncio.gather(mine.settle(_end(hold, output)), mine.settle(_end(hold, output)))
        return 1

    done = sum(await asyncio.gather(*(one(n) for n in range(200))))
    await other.close()
    await other_db.close()
    spent, held = (await _windows(db))["charge_month"]
    assert done > 5
    assert 0 < spent <= limit
    assert held == 0
    assert await _value(db, "SELECT count(*) FROM entry") == done
    assert (await verify(db)).whole


async def test_open_hold_of_a_dead_process_is_released(
    clocked: tuple[Database, Ledger], clock: FakeClock
) -> None:
    db, ledger = clocked
    await _hold(ledger, _ask("a"))
    assert (await ledger.sweep()).released == 0
    clock.advance(61)
    swept = await ledger.sweep()
    assert (swept.released, swept.charged) == (1, 0)
    assert set((await _windows(db)).values()) == {(0, 0)}
    assert await _value(db, "SELECT state FROM reservation") == "released"
    assert (await verify(db)).whole


async def test_dispatched_hold_of_a_dead_process_is_charged_by_what_was_written_down(
    clocked: tuple[Database, Ledger], clock: FakeClock
) -> None:
    db, ledger = clocked
    hold = await _hold(ledger, _ask("a", wanted=10_000))
    await ledger.dispatch(hold)
    hold.seen = 700
    await ledger.first_output(hold)
    clock.advance(61)
    assert (await ledger.sweep()).charged == 1
    assert (await ledger.sweep()).charged == 0
    output = 700 + RENEWAL_TOKENS
    charge = 30_000 + output * 2_000
    assert (await _windows(db))["charge_month"] == (charge, 0)
    async with db.read() as reading:
        row = await reading.row(
            sql("SELECT output_tokens, charge_nanos, estimated, outcome FROM entry")
        )
    assert row is not None
    assert tuple(row.values()) == (output, charge, 1, "lost")
    assert await _value(db, "SELECT state FROM reservation") == "charged_estimate"
    assert (await verify(db)).whole


async def test_recovery_never_charges_more_than_the_hold(
    clocked: tuple[Database, Ledger], clock: FakeClock
) -> None:
    db, ledger = clocked
    hold = await _hold(ledger, _ask("a", wanted=300))
    await ledger.dispatch(hold)
    clock.advance(61)
    await ledger.sweep()
    spent, held = (await _windows(db))["charge_month"]
    assert (spent, held) == (30_000 + 300 * 2_000, 0)
    assert spent <= hold.charge_held_nanos


async def test_real_usage_that_comes_late_is_entered_as_a_difference(
    clocked: tuple[Database, Ledger], clock: FakeClock
) -> None:
    db, ledger = clocked
    hold = await _hold(ledger, _ask("a"))
    await ledger.dispatch(hold)
    clock.advance(61)
    await ledger.sweep()
    assert await ledger.settle(_end(hold))
    assert not await ledger.settle(_end(hold))
    assert (await _windows(db))["charge_month"] == (70_000, 0)
    assert (await _windows(db))["tokens_day"] == (60, 0)
    assert await _value(db, "SELECT SUM(charge_nanos) FROM entry") == 70_000
    assert await _value(db, "SELECT count(*) FROM entry") == 2
    assert (await verify(db)).whole


async def test_renewal_keeps_a_living_call(
    clocked: tuple[Database, Ledger], clock: FakeClock
) -> None:
    _, ledger = clocked
    hold = await _hold(ledger, _ask("a"))
    await ledger.dispatch(hold)
    clock.advance(50)
    await ledger.first_output(hold)
    clock.advance(50)
    assert (await ledger.sweep()).charged == 0
    assert await ledger.settle(_end(hold))


@pytest.mark.parametrize("change", ["UPDATE entry SET charge_nanos = 0", "DELETE FROM entry"])
async def test_entries_cannot_be_changed(clocked: tuple[Database, Ledger], change: str) -> None:
    db, ledger = clocked
    hold = await _hold(ledger, _ask("a"))
    await ledger.settle(_end(hold))
    with pytest.raises(DBAPIError, match="append-only"):
        async with db.transaction() as tx:
            await tx.execute(sql(change))


async def test_proof_sees_a_sum_that_was_touched(clocked: tuple[Database, Ledger]) -> None:
    db, ledger = clocked
    hold = await _hold(ledger, _ask("a"))
    await ledger.settle(_end(hold))
    await _hold(ledger, _ask("b"))
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

    async def apply(self, ops: Sequence[Op]) -> list[Result]:
        if self.failures:
            self.failures -= 1
            raise OSError("the disk is away")
        self.applied += ops
        return [True] * len(ops)

    async def close(self) -> None:
        return


async def test_writer_refuses_holds_and_keeps_settlements_while_the_database_is_away() -> None:
    store = _Failing(2)
    writer = Writer(store)
    writer.start()
    settle = _end(Hold("x", 1, 1))
    settled = writer.submit(settle)
    reserved = writer.submit(_ask("a"))
    with pytest.raises(AlcoveError) as caught:
        await reserved
    assert (caught.value.code, caught.value.reason) == ("unavailable", "ledger")
    assert await settled
    assert store.applied == [settle]
    await writer.close()
    with pytest.raises(AlcoveError):
        await writer.submit(settle)


async def test_hold_whose_caller_left_meanwhile_is_given_back(
    clocked: tuple[Database, Ledger],
) -> None:
    db, ledger = clocked
    asking = asyncio.create_task(ledger.reserve(_ask("a")))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    async def released() -> bool:
        return await _value(db, "SELECT count(*) FROM reservation WHERE state = 'open'") == 0

    await until(released)
    assert {held for _, held in (await _windows(db)).values()} <= {0}
