"""Marks: half, four fifths and nineteen twentieths of a limit are told once a window, and not again."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from infra.kit import ids
from infra.kit.clock import FakeClock, SystemClock
from infra.kit.db import Database, sql
from infra.kit.metrics import Metrics
from infra.kit.tracing import Tracing
from metering_proxy.ledger.ledger import Hold, Ledger
from metering_proxy.quotas import Quotas
from metering_proxy.telemetry import Telemetry
from tests import scripted as s
from tests.metering_proxy.books import ask, end, hold_of, windows
from tests.metering_proxy.house import House
from tests.scripted import ScriptedProvider


async def _marks(db: Database) -> list[tuple[str, int]]:
    async with db.read() as reading:
        rows = await reading.rows(sql("SELECT kind, percent FROM mark ORDER BY kind, percent"))
    return [(row["kind"], row["percent"]) for row in rows]


async def _use(ledger: Ledger, output: int) -> None:
    """A call that is charged 50,000 and 2,000 for each token of output, of a limit of 3,000,000."""
    op = ask("a", limit=3_000_000, wanted=output)
    assert await ledger.settle(end(await hold_of(ledger, op), output))


@pytest.mark.parametrize(
    ("outputs", "marks"),
    [
        ([724], []),
        ([725], [50]),
        ([725, 1], [50]),
        ([725, 424], [50]),
        ([725, 425], [50, 80]),
        ([1_000, 374], [50, 80]),
        ([1_000, 375], [50, 80, 95]),
    ],
)
async def test_mark_is_set_when_use_reaches_it_exactly(
    clocked: tuple[Database, Ledger], outputs: list[int], marks: list[int]
) -> None:
    db, ledger = clocked
    for output in outputs:
        await _use(ledger, output)
    assert await _marks(db) == [("charge_month", percent) for percent in marks]


async def test_marks_of_minutes_and_of_no_limit_are_not_set(
    clocked: tuple[Database, Ledger], clock: FakeClock
) -> None:
    db, ledger = clocked
    for _ in range(3):
        assert await ledger.settle(end(await hold_of(ledger, ask("a", limit=2**62))))
    assert await _marks(db) == []


async def test_mark_is_in_the_quota_and_counted_once(
    house: House, scripted: ScriptedProvider
) -> None:
    scripted.always(reply=s.text("x").using(100, 500))
    await house.connect(scripted)
    tenant = await house.tenant("free", charge_month_nanos=2_100_000)
    await tenant.chat(max_tokens=500)
    await house.entries(tenant)
    quota = await house.client.quota(tenant.id)
    assert [(mark.kind, mark.percent) for mark in quota.marks] == [("charge_month", 50)]
    assert await house.client.marks(tenant.id) == quota.marks
    registry = house.meter.metrics.registry
    labels = {"kind": "charge_month", "percent": "50"}
    for _ in range(2):
        await house.meter.quotas.tell_marks()
    assert registry.get_sample_value("meter_limit_marks_total", labels) == 1


async def test_tenants_that_passed_a_mark_are_listed_while_its_window_runs(
    timed: House, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    scripted.always(reply=s.text("x").using(100, 500))
    await timed.connect(scripted)
    half = await timed.tenant("free", charge_month_nanos=2_100_000)
    most = await timed.tenant("free", charge_month_nanos=1_300_000)
    little = await timed.tenant("free")
    for tenant in (half, most, little):
        await tenant.chat(max_tokens=500)
        await timed.entries(tenant)
    found = {mark.tenant: mark.percent for mark in await timed.client.all_marks()}
    assert found == {half.id: 50, most.id: 80}
    assert [mark.tenant for mark in await timed.client.all_marks(80)] == [most.id]
    clock.advance(31 * 86_400)
    assert await timed.client.all_marks() == []


@pytest.mark.thorough
async def test_mark_is_set_and_told_once_a_window_whoever_looks(both: House) -> None:
    """Four processes settle at the edge of a limit, and all of them tell of marks at the same time."""
    ledgers = [Ledger(both.db) for _ in range(4)]
    tellers = [Metrics("meter") for _ in ledgers]
    quotas = [
        Quotas(both.db, both.meter.tenants, Telemetry(one, Tracing("meter")), SystemClock())
        for one in tellers
    ]
    for ledger in ledgers:
        ledger.start()

    async def calls(ledger: Ledger) -> None:
        op = replace(ask("a", limit=4_000_000, wanted=128), floor=1)
        while isinstance(hold := await ledger.reserve(replace(op, request_id=ids.ulid())), Hold):
            await ledger.settle(end(hold, hold.limit))
            await asyncio.gather(*(one.tell_marks() for one in quotas))

    await asyncio.gather(*map(calls, ledgers))
    await calls(ledgers[0])  # what the others' holds had left no room for
    for ledger in ledgers:
        await ledger.close()
    told: Counter[str] = Counter()
    for percent in ("50", "80", "95"):
        labels = {"kind": "charge_month", "percent": percent}
        for one in tellers:
            seen = one.registry.get_sample_value("meter_limit_marks_total", labels)
            told[percent] += int(seen or 0)
    assert (await windows(both.db))["charge_month"][0] > 4_000_000 * 0.95
    registry = both.meter.metrics.registry  # its own job may have been quicker
    for percent in told:
        labels = {"kind": "charge_month", "percent": percent}
        told[percent] += int(registry.get_sample_value("meter_limit_marks_total", labels) or 0)
    assert told == {"50": 1, "80": 1, "95": 1}
    assert await _marks(both.db) == [("charge_month", percent) for percent in (50, 80, 95)]
