"""Corrections are new entries: late usage once, prices made good as often as they change."""

import asyncio

import pytest

from infra.kit.clock import FakeClock
from infra.kit.db import Database, sql
from infra.kit.errors import AlcoveError
from metering_proxy import wire
from metering_proxy.ledger.ledger import Ledger
from metering_proxy.ledger.ops import Correct
from metering_proxy.ledger.verify import verify
from tests import scripted as s
from tests.metering_proxy.books import ask, end, hold_of, swept_by_another, value, windows
from tests.metering_proxy.house import MODEL, ROW, House, Tenant
from tests.scripted import ScriptedProvider

_EVER = {"from_at": 0, "to_at": 30_000_000_000_000}


async def test_correction_enters_the_difference_and_moves_the_month(
    clocked: tuple[Database, Ledger],
) -> None:
    db, ledger = clocked
    hold = await hold_of(ledger, ask("a"))
    assert await ledger.settle(end(hold, 10))  # 70,000
    first = Correct(hold.request_id, 1, "p/m@2", 70_000, 70_000, 50_000, 60_000)
    assert await ledger.correct(first)
    assert not await ledger.correct(first)  # entries say something else by now
    assert await ledger.correct(
        Correct(hold.request_id, 1, "p/m@3", 50_000, 60_000, 90_000, 90_000)
    )
    assert not await ledger.correct(Correct("nobody", 1, "p/m@3", 0, 0, 1, 1))
    async with db.read() as reading:
        rows = await reading.rows(
            sql("SELECT kind, price_id, cost_nanos, charge_nanos FROM entry ORDER BY kind DESC")
        )
    assert [tuple(row.values()) for row in rows] == [
        ("usage", "p/m@1", 70_000, 70_000),
        ("correction_2", "p/m@3", 40_000, 30_000),
        ("correction_1", "p/m@2", -20_000, -10_000),
    ]
    assert (await windows(db))["charge_month"] == (90_000, 0)
    assert (await verify(db)).whole


async def test_late_usage_counts_once_even_after_a_price_was_made_good(
    clocked: tuple[Database, Ledger], clock: FakeClock
) -> None:
    db, ledger = clocked
    hold = await hold_of(ledger, ask("a"))
    clock.advance(61)
    await swept_by_another(db, clock)
    estimate = int(str(await value(db, "SELECT charge_nanos FROM entry")))
    assert await ledger.correct(
        Correct(hold.request_id, 1, "p/m@2", estimate, estimate, estimate - 5, estimate - 5)
    )
    assert await ledger.settle(end(hold, 10))
    assert not await ledger.settle(end(hold, 10))
    assert await value(db, "SELECT SUM(charge_nanos) FROM entry") == 70_000
    assert await value(db, "SELECT count(*) FROM entry") == 3
    assert (await verify(db)).whole


async def _a_dearer_price(house: House) -> None:
    """The admin finds that the model had cost twice as much all along."""
    async with house.db.transaction() as tx:
        await tx.execute(sql("UPDATE provider_price SET input_nanos = 2000000000"))
    await house.meter.providers.load()


async def test_calls_are_priced_anew_once_and_only_on_request(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.always(reply=s.text("x").using(100, 10))
    paying = await house.tenant("plus")
    for who in (tenant, tenant, paying):
        await who.chat()
    await house.entries(tenant, 2)
    await house.entries(paying)
    same = await house.client.reprice(wire.RepriceRequest(**_EVER, dry_run=False))
    assert (same.requests, same.changed) == (3, 0)
    await _a_dearer_price(house)
    asked = wire.RepriceRequest(**_EVER)
    looked = await house.client.reprice(asked)
    assert (looked.changed, looked.cost_nanos, looked.charge_nanos) == (3, 300_000, 320_000)
    assert await house.rows("SELECT 1 FROM entry WHERE kind <> 'usage'") == []
    only = asked.model_copy(update={"tenant": paying.id, "dry_run": False})
    assert (await house.client.reprice(only)).charge_nanos == 120_000
    rest = await house.client.reprice(asked.model_copy(update={"dry_run": False}))
    assert (rest.requests, rest.changed, rest.charge_nanos) == (3, 2, 200_000)
    again = await house.client.reprice(asked.model_copy(update={"dry_run": False}))
    assert again.changed == 0
    quota = await house.client.quota(paying.id)
    assert quota.charge_month.spent_nanos == (200_000 + 20_000) * 12 // 10
    usage = await house.client.usage(**_EVER, group=("tenant",))
    assert (usage.totals.requests, usage.totals.cost_nanos) == (3, 3 * 220_000)
    assert (await house.verdict()).whole


async def test_cost_that_the_provider_stated_is_no_matter_of_our_prices(
    house: House, scripted: ScriptedProvider
) -> None:
    await house.connect(scripted, "openrouter")
    tenant = await house.tenant()
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "cost": 0.0005}
    scripted.then(reply=s.text("x").with_raw_usage(usage))
    scripted.then(reply=s.text("x").using(100, 10))
    await tenant.chat()
    await tenant.chat()
    assert {e["cost_nanos"] for e in await house.entries(tenant, 2)} == {500_000, 120_000}
    await _a_dearer_price(house)
    answer = await house.client.reprice(wire.RepriceRequest(**_EVER, dry_run=False))
    assert (answer.requests, answer.stated, answer.changed) == (2, 1, 1)
    assert answer.cost_nanos == 100_000
    rows = await house.rows("SELECT cost_nanos FROM entry WHERE kind = 'correction_1'")
    assert rows == [{"cost_nanos": 100_000}]


async def test_model_that_is_gone_is_left_as_it_is(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.always(reply=s.text("x").using(100, 10))
    await tenant.chat()
    await house.entries(tenant)
    await house.client.delete_provider("scripted")
    answer = await house.client.reprice(wire.RepriceRequest(**_EVER, dry_run=False))
    assert (answer.requests, answer.changed, answer.unpriced) == (1, 0, 1)
    with pytest.raises(AlcoveError) as caught:
        await house.client.reprice(wire.RepriceRequest(from_at=5, to_at=5))
    assert (caught.value.code, caught.value.reason) == ("invalid", "period")


async def test_call_begun_before_a_new_price_is_priced_by_the_old_one_and_tells_so(
    timed: House, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    gate = s.Gate()
    scripted.then(reply=s.text("hello", gate, "there").using(100, 10))
    await timed.connect(scripted)
    tenant = await timed.tenant()
    call = asyncio.create_task(tenant.chat(stream=True))
    await gate.reached()
    clock.advance(1)
    dearer = ROW.model_copy(update={"input_nanos": 9_000_000_000})
    await timed.client.change_provider("scripted", wire.ProviderChange(models=[dearer]))
    gate.open()
    answer = await call
    [entry] = await timed.entries(tenant)
    assert entry["cost_nanos"] == 120_000
    detail = await timed.client.request(answer.headers["x-alcove-request-id"])
    assert (detail.tenant, detail.state, detail.model) == (
        tenant.id,
        "settled",
        f"scripted/{MODEL}",
    )
    assert detail.price is not None
    assert detail.price["input"] == 1_000_000_000
    assert detail.plan.startswith("free@")
    assert [one.kind for one in detail.entries] == ["usage"]
    assert detail.entries[0].parts["input"] == 100
    assert detail.started_at <= (detail.dispatched_at or 0) <= (detail.ended_at or 0)
    with pytest.raises(AlcoveError) as caught:
        await timed.client.request("nothing")
    assert caught.value.code == "not_found"
