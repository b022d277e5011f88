"""Marks: half, four fifths and nineteen twentieths of a limit are told once a window, and not again."""

import asyncio
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.kit import ids
from infra.kit.clock import FakeClock, SystemClock
from infra.kit.db import Database, sql
from infra.kit.metrics import Metrics
from infra.kit.tracing import Tracing
from metering_proxy import plans, wire
from metering_proxy.ledger.ledger import Hold, Ledger
from metering_proxy.marks import Marks
from metering_proxy.telemetry import Telemetry
from tests import scripted as s
from tests.metering_proxy.books import ask, end, hold_of, windows
from tests.metering_proxy.house import House, Tenant, a_house
from tests.scripted import ScriptedProvider
from tests.waiting import until


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
        await house.meter.marks.tell()
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


# Of a month in which 1,100,000 was charged and 50, 80 and 95 % of 1,100,000 were passed.
@pytest.mark.parametrize(
    ("limit_nanos", "shown"),
    [
        (1_100_000, [50, 80, 95]),
        (1_157_895, [50, 80]),
        (1_375_000, [50, 80]),
        (1_375_001, [50]),
        (2_200_000, [50]),
        (2_200_001, []),
        (20_000_000_000, []),
        (None, []),
        (500_000, [50, 80, 95]),
    ],
)
async def test_mark_is_shown_while_use_is_past_it_by_the_limit_of_now(
    house: House, scripted: ScriptedProvider, limit_nanos: int | None, shown: list[int]
) -> None:
    scripted.always(reply=s.text("x").using(100, 500))
    await house.connect(scripted)
    tenant = await house.tenant("free", charge_month_nanos=1_100_000)
    assert (await tenant.chat(max_tokens=500)).status == 200
    await house.entries(tenant)
    now = wire.QuotaOverride(charge_month_nanos=limit_nanos)
    state = wire.TenantState(plan="free", status="active", version=2, quota=now)
    await house.client.put_tenant(tenant.id, state)
    marks = (await house.client.quota(tenant.id)).marks
    assert [mark.percent for mark in marks] == shown
    assert [mark.percent for mark in await house.client.all_marks()] == shown[-1:]
    assert len(await house.client.marks(tenant.id)) == 3, "what happened stays written down"


@pytest.mark.thorough
async def test_mark_is_set_and_told_once_a_window_whoever_looks(both: House) -> None:
    """Four processes settle at the edge of a limit, and all of them tell of marks at the same time."""
    ledgers = [Ledger(both.db) for _ in range(4)]
    tellers = [Metrics("meter") for _ in ledgers]
    marks = [
        Marks(both.db, both.meter.tenants, Telemetry(one, Tracing("meter")), SystemClock())
        for one in tellers
    ]
    for ledger in ledgers:
        ledger.start()

    async def calls(ledger: Ledger) -> None:
        op = replace(ask("a", limit=4_000_000, wanted=128), floor=1)
        while isinstance(hold := await ledger.reserve(replace(op, request_id=ids.ulid())), Hold):
            await ledger.settle(end(hold, hold.limit))
            await asyncio.gather(*(one.tell() for one in marks))

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


async def test_use_that_was_past_a_lowered_limit_is_marked_by_the_next_call_and_once(
    clocked: tuple[Database, Ledger],
) -> None:
    db, ledger = clocked
    await _use(ledger, 425)  # 900,000 of 3,000,000
    assert await _marks(db) == []
    for _ in range(2):
        op = ask("a", limit=1_500_000, wanted=16)
        assert await ledger.settle(end(await hold_of(ledger, op), 1))
        assert await _marks(db) == [("charge_month", 50)]


async def _lower(house: House, tenant: Tenant, version: int, **quota: Any) -> None:
    override = wire.QuotaOverride(**quota)
    state = wire.TenantState(plan="free", status="active", version=version, quota=override)
    await house.client.put_tenant(tenant.id, state)


async def _shown(house: House, tenant: Tenant) -> list[tuple[str, int]]:
    """The marks in a tenant's quota, which are those of the table too."""
    found = (await house.client.quota(tenant.id)).marks
    kept = await house.client.marks(tenant.id)
    assert {(one.kind, one.percent) for one in kept} >= {(one.kind, one.percent) for one in found}
    return [(one.kind, one.percent) for one in found]


@pytest.mark.parametrize(
    ("limit", "percents"),
    [(1_100_000, [50, 80, 95]), (1_200_000, [50, 80]), (2_300_000, []), (0, [50, 80, 95])],
)
async def test_limit_that_comes_down_on_what_is_used_is_marked_at_once(
    both: House, scripted: ScriptedProvider, limit: int, percents: list[int]
) -> None:
    scripted.always(reply=s.text("x").using(100, 500))  # 1,100,000
    await both.connect(scripted)
    tenant, other = await both.tenant("free"), await both.tenant("free")
    for one in (tenant, other):
        await one.chat(max_tokens=500)
        await both.entries(one)
    await _lower(both, tenant, 2, charge_month_nanos=limit)
    assert await _shown(both, tenant) == [("charge_month", percent) for percent in percents]
    listed = {mark.tenant: mark.percent for mark in await both.client.all_marks()}
    assert listed == ({tenant.id: percents[-1]} if percents else {})


async def test_limit_that_goes_up_and_down_is_marked_once_a_window_and_told_once(
    house: House, scripted: ScriptedProvider
) -> None:
    scripted.always(reply=s.text("x").using(100, 500))
    await house.connect(scripted)
    tenant = await house.tenant("free")
    await tenant.chat(max_tokens=500)
    await house.entries(tenant)
    for version, limit in enumerate((2_000_000, None, 2_000_000, 1_900_000), 2):
        await _lower(house, tenant, version, charge_month_nanos=limit)
        await house.meter.marks.tell()
    assert await _shown(house, tenant) == [("charge_month", 50)]
    registry = house.meter.metrics.registry
    labels = {"kind": "charge_month", "percent": "50"}
    assert registry.get_sample_value("meter_limit_marks_total", labels) == 1


async def test_use_past_the_limit_that_is_back_when_an_override_ends_is_marked(
    timed: House, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    scripted.always(reply=s.text("x").using(100, 500))
    await timed.connect(scripted)
    tenant = await timed.tenant("free")
    until_at = clock.now_at() + 60_000
    await _lower(timed, tenant, 2, charge_month_nanos=3_000_000_000, until_at=until_at)
    await timed.meter.marks.tell()
    for _ in range(4):
        await tenant.chat(max_tokens=500)
    await timed.entries(tenant, 4)
    small = timed.meter.tenants.plans.get("free").limits["charge_month"].limit
    used = sql("UPDATE account_window SET spent = :spent WHERE kind = 'charge_month'")
    async with timed.db.transaction() as tx:
        await tx.execute(used, {"spent": small * 9 // 10})
    await timed.meter.marks.tell()
    assert await _shown(timed, tenant) == []
    clock.advance(61)
    await timed.meter.marks.tell()
    assert await _shown(timed, tenant) == [("charge_month", 50), ("charge_month", 80)]


async def test_plan_that_gives_less_marks_what_its_tenants_have_used(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    plans_file = tmp_path / "plans.toml"
    shutil.copy(plans.FILE, plans_file)
    scripted.always(reply=s.text("x").using(100, 500))
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/m.db", plans_file=plans_file) as house:
        await house.connect(scripted)
        tenant = await house.tenant("free")
        await tenant.chat(max_tokens=500)
        await house.entries(tenant)
        given = plans_file.read_text()
        assert given.count('charge_month = "1.00"') == 1
        plans_file.write_text(given.replace('"1.00"', '"0.0012"'))
        await until(lambda: _shown(house, tenant), what="the plan's marks")
        assert await _shown(house, tenant) == [("charge_month", 50), ("charge_month", 80)]
    plans_file.write_text(given.replace('"1.00"', '"0.0011"'))  # while no meter runs
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/m.db", plans_file=plans_file) as house:
        await house.meter.marks.tell()
        assert len(await _shown(house, tenant)) == 3
