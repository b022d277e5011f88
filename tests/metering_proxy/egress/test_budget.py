"""A day's bytes are never passed, whoever takes them at once; what is not used comes back."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from infra.kit.clock import FakeClock
from infra.kit.db import Database, sql
from infra.kit.errors import AlcoveError
from metering_proxy.egress.budget import FIRST_BYTES, PORTION_BYTES, Budget
from metering_proxy.egress.rules import Rules
from tests.databases import to_head
from tests.waiting import until

DAY = (0, 86_400_000)
NEXT = (86_400_000, 2 * 86_400_000)


@pytest.fixture
async def db(database_url: str, clock: FakeClock) -> AsyncIterator[Database]:
    """A migrated database."""
    opened = Database(database_url, durable=True, clock=clock)
    await to_head(opened, "metering_proxy")
    yield opened
    await opened.close()


async def _row(db: Database, day: tuple[int, int] = DAY) -> tuple[int, int, int]:
    async with db.read() as reading:
        found = await reading.row(
            sql(
                "SELECT bytes, tunnels, calls FROM egress_day WHERE account = 'a' AND start_at = :at"
            ),
            {"at": day[0]},
        )
    return (0, 0, 0) if found is None else (found["bytes"], found["tunnels"], found["calls"])


async def test_bytes_are_taken_ahead_and_given_back(db: Database) -> None:
    allowance = await Budget(db).enter("a", DAY, "tunnels", Rules())
    assert await _row(db) == (FIRST_BYTES, 1, 0)
    await allowance.spend(1_000)
    await allowance.spend(FIRST_BYTES)
    assert (await _row(db))[0] == FIRST_BYTES + PORTION_BYTES
    await allowance.close()
    await allowance.close()
    assert await _row(db) == (FIRST_BYTES + 1_000, 1, 0)


async def test_parallel_ways_never_pass_the_days_bytes(db: Database) -> None:
    rules = Rules(bytes_day=3_000_000)
    passed = 0

    async def way(number: int) -> None:
        nonlocal passed
        # Each as a process of its own would: nothing in common but the rows.
        allowance = await Budget(db).enter("a", DAY, "tunnels", rules)
        entered.append(number)
        await until(lambda: len(entered) == 6)
        try:
            while True:
                await allowance.spend(10_000 + number)
                passed += 10_000 + number
        except AlcoveError as error:
            assert error.reason == "egress_bytes_day"
            assert error.details["resets_at"] == DAY[1]
        finally:
            await allowance.close()

    entered: list[int] = []
    await asyncio.gather(*(way(number) for number in range(6)))
    assert 3_000_000 - 6 * 10_006 <= passed <= 3_000_000
    assert (await _row(db))[0] == passed


async def test_refusal_counts_nothing_and_the_next_day_is_new(db: Database) -> None:
    budget, rules = Budget(db), Rules(bytes_day=10, ways_day=2)
    allowance = await budget.enter("a", DAY, "calls", rules)
    await allowance.spend(10)
    await allowance.close()
    with pytest.raises(AlcoveError) as caught:
        await budget.enter("a", DAY, "tunnels", rules)
    assert (caught.value.code, caught.value.reason) == ("rate_limited", "egress_bytes_day")
    assert await _row(db) == (10, 0, 1)
    await (await budget.enter("a", NEXT, "tunnels", rules)).close()
    await (await budget.enter("a", NEXT, "calls", rules)).close()
    with pytest.raises(AlcoveError) as caught:
        await budget.enter("a", NEXT, "calls", rules)
    assert caught.value.reason == "egress_ways_day"
    assert await _row(db, NEXT) == (0, 1, 1)


async def test_bytes_come_back_when_their_taker_leaves_meanwhile(db: Database) -> None:
    allowance = await Budget(db).enter("a", DAY, "tunnels", Rules())
    spending = asyncio.create_task(allowance.spend(FIRST_BYTES + 1))
    await asyncio.sleep(0)
    spending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await spending
    await allowance.close()
    assert (await _row(db))[0] == 0
