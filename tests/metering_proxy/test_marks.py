"""Marks: half, four fifths and nineteen twentieths of a limit are told once a window, and not again."""

import pytest

from infra.kit.clock import FakeClock
from infra.kit.db import Database, sql
from metering_proxy.ledger.ledger import Ledger
from tests import scripted as s
from tests.metering_proxy.books import ask, end, hold_of
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
