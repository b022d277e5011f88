"""A wall clock that is set ahead by some minutes: who lives is not taken for dead, and who is dead is found."""

import asyncio

import pytest

from infra.kit.clock import FakeClock
from infra.kit.db import Database
from metering_proxy.ledger.leaps import Leaps
from metering_proxy.ledger.ledger import Ledger
from metering_proxy.ledger.verify import verify
from tests import scripted as s
from tests.metering_proxy.books import ask, end, hold_of, neighbour, value
from tests.metering_proxy.house import House
from tests.scripted import ScriptedProvider
from tests.waiting import until

Clocked = tuple[Database, Ledger]
LEAP_S = 300
RUNNING = "SELECT count(*) FROM reservation WHERE state = 'dispatched'"


@pytest.mark.parametrize("seen_before", [True, False])
async def test_process_sweeps_no_call_that_it_knows_to_live(
    clocked: Clocked, clock: FakeClock, seen_before: bool
) -> None:
    db, ledger = clocked
    if seen_before:
        await ledger.sweep()
    hold = await hold_of(ledger, ask("a"))
    clock.jump(LEAP_S)
    hold.seen = 40
    assert (await ledger.sweep()).charged == 0
    await ledger.sweep()  # behind the renewal
    assert await value(db, "SELECT output_seen FROM reservation") == 40
    assert await value(db, "SELECT lease_until_at FROM reservation") == clock.now_at() + 60_000
    assert await ledger.settle(end(hold))
    assert await value(db, "SELECT count(*) FROM entry") == 1
    assert (await verify(db)).whole


async def test_living_call_outlasts_a_database_that_was_away_for_longer_than_its_lease(
    clocked: Clocked, clock: FakeClock
) -> None:
    db, ledger = clocked
    await ledger.sweep()
    holds = [await hold_of(ledger, ask("a", concurrent=500)) for _ in range(2)]
    clock.advance(200)  # no renewal was written meanwhile
    swept = await ledger.sweep()
    assert (swept.charged, swept.kept) == (0, 2)
    for hold in holds:
        assert await ledger.settle(end(hold))
    assert await value(db, "SELECT count(*) FROM entry WHERE outcome = 'lost'") == 0


async def test_neighbours_calls_outlast_a_leap_and_end_a_lease_later_where_nobody_renews(
    clocked: Clocked, clock: FakeClock
) -> None:
    db, ledger = clocked
    living, dead = [await hold_of(ledger, ask("a")) for _ in range(2)]
    async with neighbour(db, clock) as other:
        await other.sweep()
        clock.advance(10)
        clock.jump(LEAP_S)
        assert (await other.sweep()).charged == 0
        clock.advance(20)
        await ledger.first_output(living)  # as its renewal does, which goes by real time
        assert (await other.sweep()).charged == 0
        clock.advance(31)  # a minute since the hold, leap aside
        assert (await other.sweep()).charged == 1
        del ledger.running[dead.request_id]
        assert await value(db, "SELECT request_id FROM reservation WHERE state = 'dispatched'") == (
            living.request_id
        )
        clock.advance(30)
        await other.sweep()
        assert await ledger.settle(end(living))
    assert await value(db, RUNNING) == 0
    assert (await verify(db)).whole


async def test_second_leap_is_a_leap_too(clocked: Clocked, clock: FakeClock) -> None:
    db, ledger = clocked
    await hold_of(ledger, ask("a"))
    async with neighbour(db, clock) as other:
        await other.sweep()
        for _ in range(2):
            clock.jump(LEAP_S)
            assert (await other.sweep()).charged == 0
        clock.advance(61)
        assert (await other.sweep()).charged == 1


def test_clock_is_believed_again_a_lease_after_it_has_leapt() -> None:
    clock = FakeClock(0)
    leaps = Leaps(60, clock.monotonic_s)
    assert leaps.expected_at() is None
    assert not leaps.saw(clock.now_at())
    clock.advance(30)
    assert leaps.expected_at() == 30_000
    clock.jump(0.9)
    assert not leaps.saw(clock.now_at())
    clock.jump(LEAP_S)
    assert [leaps.saw(clock.now_at()) for _ in range(2)] == [True, False]
    assert leaps.expected_at() == 30_900
    clock.advance(59)
    assert not leaps.saw(clock.now_at())
    assert leaps.expected_at() == 89_900
    clock.advance(1)
    assert not leaps.saw(clock.now_at())
    assert leaps.expected_at() == clock.now_at()
    clock.jump(-LEAP_S)
    assert not leaps.saw(clock.now_at())
    assert leaps.expected_at() == clock.now_at()


async def test_stream_goes_on_over_a_leap_and_keeps_its_place(
    timed: House, clock: FakeClock, scripted: ScriptedProvider
) -> None:
    await timed.connect(scripted)
    tenant = await timed.tenant("free", concurrent=1)
    gate = s.Gate()
    scripted.then(reply=s.text("some words ", gate, "and an end").using(40, 20))
    stream = asyncio.create_task(tenant.chat(stream=True))
    await until(lambda: bool(timed.meter.ledger.running), what="the stream's hold")
    clock.jump(LEAP_S)
    for _ in range(2):
        await timed.meter.ledger.sweep()
    assert (await tenant.chat()).headers["x-alcove-reason"] == "concurrent_calls"
    gate.open()
    assert (await stream).body.endswith(b"data: [DONE]\n\n")
    [entry] = await timed.entries(tenant)
    assert (entry["outcome"], entry["estimated"]) == ("complete", 0)
