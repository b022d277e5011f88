"""A wall clock that is set back an hour: no call, living or dead, keeps its place for longer than a lease."""

import asyncio

from infra.kit.clock import FakeClock
from infra.kit.db import Database
from metering_proxy.ledger.endings import RENEWAL_TOKENS
from metering_proxy.ledger.ledger import Ledger
from metering_proxy.ledger.ops import Refused
from tests import scripted as s
from tests.metering_proxy.books import ask, end, hold_of, swept_by_another, value, windows
from tests.metering_proxy.house import House
from tests.scripted import ScriptedProvider
from tests.waiting import until

HOUR_S = 3600


async def test_dead_call_gives_its_place_back_a_lease_after_the_clock_was_set_back(
    clocked: tuple[Database, Ledger], clock: FakeClock
) -> None:
    db, ledger = clocked
    dead = await hold_of(ledger, ask("a", concurrent=1, wanted=10_000))
    dead.seen = 700
    await ledger.first_output(dead)
    clock.jump(-HOUR_S)
    swept = await ledger.sweep()
    assert (swept.charged, swept.cut) == (0, 1)
    assert isinstance(await ledger.reserve(ask("a", concurrent=1)), Refused)
    clock.advance(61)
    swept = await swept_by_another(db, clock)
    assert (swept.charged, swept.cut) == (1, 0)
    assert await value(db, "SELECT output_tokens FROM entry") == 700 + RENEWAL_TOKENS
    assert (await windows(db))["charge_month"][1] == 0
    await hold_of(ledger, ask("a", concurrent=1))


async def test_living_call_is_neither_cut_short_nor_counted_twice_when_the_clock_was_set_back(
    clocked: tuple[Database, Ledger], clock: FakeClock
) -> None:
    db, ledger = clocked
    hold = await hold_of(ledger, ask("a"))
    clock.jump(-HOUR_S)
    hold.seen = 40
    renewal = ledger.first_output(hold)
    assert (await ledger.sweep()).charged == 0
    assert await renewal
    assert await value(db, "SELECT output_seen FROM reservation") == 40
    clock.advance(50)
    await ledger.first_output(hold)
    clock.advance(50)
    swept = await ledger.sweep()
    assert (swept.charged, swept.cut) == (0, 0)
    assert await ledger.settle(end(hold))
    assert await value(db, "SELECT count(*) FROM reservation WHERE state = 'dispatched'") == 0


async def test_every_lease_is_cut_when_there_are_more_than_one_sweep_takes(
    clocked: tuple[Database, Ledger], clock: FakeClock
) -> None:
    db, ledger = clocked
    await asyncio.gather(*(hold_of(ledger, ask("a", concurrent=500)) for _ in range(230)))
    clock.jump(-HOUR_S)
    assert (await ledger.sweep()).cut == 230
    latest_at = clock.now_at() + 60_000
    assert await value(db, "SELECT max(lease_until_at) FROM reservation") == latest_at


async def test_slot_of_a_dead_neighbour_is_free_a_lease_later_while_a_stream_goes_on(
    timed: House, clock: FakeClock, scripted: ScriptedProvider
) -> None:
    await timed.connect(scripted)
    clock.advance(2 * HOUR_S)  # the price is older than the jump is long
    tenant = await timed.tenant("free", concurrent=2)
    neighbour = Ledger(timed.db, lease_s=60, clock=clock)
    neighbour.start()
    await hold_of(neighbour, ask(tenant.id))
    await neighbour.close()
    gate = s.Gate()
    scripted.then(reply=s.text("some words ", gate, "and an end").using(40, 20))
    stream = asyncio.create_task(tenant.chat(stream=True))
    await until(lambda: bool(timed.meter.ledger.running), what="the stream's hold")
    clock.jump(-HOUR_S)
    await timed.meter.ledger.sweep()
    assert (await timed.client.quota(tenant.id)).concurrent.used == 2
    assert (await tenant.chat()).status == 429
    clock.advance(50)
    [hold] = timed.meter.ledger.running.values()
    await timed.meter.ledger.first_output(hold)  # as its renewal does, which goes by real time
    clock.advance(11)
    await timed.meter.ledger.sweep()
    assert (await timed.client.quota(tenant.id)).concurrent.used == 1
    scripted.then(reply=s.text("hello").using(40, 20))
    assert (await tenant.chat()).status == 200
    gate.open()
    assert (await stream).body.endswith(b"data: [DONE]\n\n")
    await until(lambda: not timed.meter.ledger.running, what="the stream's ending")
    outcomes = [row["outcome"] for row in await timed.entries(tenant, 3)]
    assert sorted(outcomes) == ["complete", "complete", "lost"]
