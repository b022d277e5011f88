"""Calls whose process is gone: nothing is freed in silence, nothing is charged twice."""

from dataclasses import replace

from infra.kit import ids
from infra.kit.clock import FakeClock
from infra.kit.db import Database, sql
from metering_proxy.ledger.endings import RENEWAL_TOKENS
from metering_proxy.ledger.ledger import Ledger
from metering_proxy.ledger.tidying import tidy
from metering_proxy.ledger.verify import verify
from tests.metering_proxy.books import ask, end, hold_of, swept_by_another, value, windows


async def test_dispatched_hold_of_a_dead_process_is_charged_by_what_was_written_down(
    clocked: tuple[Database, Ledger], clock: FakeClock
) -> None:
    db, ledger = clocked
    hold = await hold_of(ledger, ask("a", wanted=10_000))
    hold.seen = 700
    await ledger.first_output(hold)
    clock.advance(61)
    assert (await swept_by_another(db, clock)).charged == 1
    assert (await ledger.sweep()).charged == 0
    output = 700 + RENEWAL_TOKENS
    charge = 30_000 + output * 2_000
    assert (await windows(db))["charge_month"] == (charge, 0)
    async with db.read() as reading:
        row = await reading.row(
            sql("SELECT output_tokens, charge_nanos, estimated, outcome FROM entry")
        )
    assert row is not None
    assert tuple(row.values()) == (output, charge, 1, "lost")
    assert await value(db, "SELECT state FROM reservation") == "charged_estimate"
    assert (await verify(db)).whole


async def test_recovery_never_charges_more_than_the_hold(
    clocked: tuple[Database, Ledger], clock: FakeClock
) -> None:
    db, ledger = clocked
    hold = await hold_of(ledger, ask("a", wanted=300))
    clock.advance(61)
    await swept_by_another(db, clock)
    spent, held = (await windows(db))["charge_month"]
    assert (spent, held) == (30_000 + 300 * 2_000, 0)
    assert spent <= hold.charge_held_nanos


async def test_real_usage_that_comes_late_is_entered_as_a_difference(
    clocked: tuple[Database, Ledger], clock: FakeClock
) -> None:
    db, ledger = clocked
    hold = await hold_of(ledger, ask("a"))
    clock.advance(61)
    await swept_by_another(db, clock)
    assert await ledger.settle(end(hold))
    assert not await ledger.settle(end(hold))
    assert (await windows(db))["charge_month"] == (70_000, 0)
    assert (await windows(db))["tokens_day"] == (60, 0)
    assert await value(db, "SELECT SUM(charge_nanos) FROM entry") == 70_000
    assert await value(db, "SELECT count(*) FROM entry") == 2
    assert (await verify(db)).whole


async def test_renewal_keeps_a_living_call(
    clocked: tuple[Database, Ledger], clock: FakeClock
) -> None:
    _, ledger = clocked
    hold = await hold_of(ledger, ask("a"))
    clock.advance(50)
    await ledger.first_output(hold)
    clock.advance(50)
    assert (await ledger.sweep()).charged == 0
    assert await ledger.settle(end(hold))


async def test_tidying_forgets_minutes_and_endings_but_no_entry_and_nothing_held(
    clocked: tuple[Database, Ledger], clock: FakeClock
) -> None:
    db, ledger = clocked
    clock.advance(-3600)
    done, running = [
        await hold_of(ledger, replace(ask(account), request_id=ids.ulid(clock.now_at())))
        for account in ("a", "b")
    ]
    await ledger.settle(end(done))
    clock.advance(40 * 86_400)
    await ledger.first_output(running)
    await tidy(db)
    assert await value(db, "SELECT count(*) FROM entry") == 1
    assert await value(db, "SELECT request_id FROM reservation") == running.request_id
    kinds = "SELECT count(*) FROM account_window WHERE account = 'a'"
    assert await value(db, f"{kinds} AND kind = 'requests_minute'") == 0
    assert await value(db, f"{kinds} AND kind = 'charge_month'") == 1
    assert (
        await value(
            db, "SELECT held FROM account_window WHERE account = 'b' AND kind = 'requests_minute'"
        )
        == 1
    )
    assert (await verify(db)).whole
