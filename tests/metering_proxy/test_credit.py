"""Grants, on both databases: the plan's money first, then what ends soonest, never more than there is."""

import asyncio
from dataclasses import replace

import pytest
from sqlalchemy.exc import DBAPIError

from infra.kit.clock import FakeClock
from infra.kit.db import Database, sql
from infra.kit.errors import AlcoveError
from metering_proxy import wire
from metering_proxy.grants import Grants
from metering_proxy.ledger.ledger import Hold, Ledger
from metering_proxy.ledger.ops import Refused
from metering_proxy.ledger.verify import verify
from tests import scripted as s
from tests.metering_proxy.books import ask, end, hold_of, windows
from tests.metering_proxy.house import House
from tests.scripted import ScriptedProvider

_DAY = 86_400_000
Clocked = tuple[Database, Ledger]


async def _grant(
    db: Database, clock: FakeClock, name: str, amount: int, days: int | None = None
) -> wire.Grant:
    ends_at = None if days is None else clock.now_at() + days * _DAY
    request = wire.GrantRequest(amount_nanos=amount, expires_at=ends_at)
    return await Grants(db, clock).put("a", name, request)


async def _left(db: Database) -> dict[str, tuple[int, int]]:
    async with db.read() as reading:
        rows = await reading.rows(sql("SELECT id, spent_nanos, held_nanos FROM credit_grant"))
    return {row["id"]: (row["spent_nanos"], row["held_nanos"]) for row in rows}


async def test_grants_pay_what_the_plan_cannot_and_the_soonest_to_end_pays_first(
    clocked: Clocked, clock: FakeClock
) -> None:
    db, ledger = clocked
    await _grant(db, clock, "for-ever", 10_000_000)
    await _grant(db, clock, "late", 10_000_000, days=9)
    await _grant(db, clock, "soon", 600_000, days=1)
    hold = await hold_of(ledger, ask("a", limit=1_000_000))  # 2,100,000 at most
    assert hold.charge_held_nanos == 2_100_000
    assert (await windows(db))["charge_month"] == (0, 1_000_000)
    assert await _left(db) == {"soon": (0, 600_000), "late": (0, 500_000), "for-ever": (0, 0)}
    assert (await verify(db)).whole
    assert await ledger.settle(end(hold, 850))  # 1,750,000
    assert (await windows(db))["charge_month"] == (1_000_000, 0)
    assert await _left(db) == {"soon": (600_000, 0), "late": (150_000, 0), "for-ever": (0, 0)}
    assert (await verify(db)).whole


async def test_grant_is_not_spent_where_the_plan_has_room_in_the_end(
    clocked: Clocked, clock: FakeClock
) -> None:
    db, ledger = clocked
    await _grant(db, clock, "extra", 10_000_000)
    first = await hold_of(ledger, ask("a", limit=2_100_000))
    second = await hold_of(ledger, ask("a", limit=2_100_000))
    assert (await _left(db))["extra"] == (0, 2_100_000)
    assert await ledger.settle(end(first, 10))
    assert await ledger.settle(end(second, 10))
    assert (await _left(db))["extra"] == (0, 0)
    assert (await windows(db))["charge_month"] == (140_000, 0)
    assert (await verify(db)).whole


async def test_released_call_gives_a_grant_back(clocked: Clocked, clock: FakeClock) -> None:
    db, ledger = clocked
    await _grant(db, clock, "extra", 3_000_000)
    hold = await hold_of(ledger, ask("a", limit=0))
    assert (await _left(db))["extra"] == (0, 2_100_000)
    assert await ledger.release(hold)
    assert (await _left(db))["extra"] == (0, 0)


@pytest.mark.parametrize("over", ["expired", "revoked"])
async def test_grant_that_is_over_pays_for_no_new_call_but_for_one_that_runs(
    clocked: Clocked, clock: FakeClock, over: str
) -> None:
    db, ledger = clocked
    await _grant(db, clock, "extra", 9_000_000, days=1)
    running = await hold_of(ledger, ask("a", limit=0))
    if over == "expired":
        clock.advance(86_400)
    else:
        await Grants(db, clock).revoke("a", "extra")
    refused = await ledger.reserve(ask("a", limit=0))
    assert isinstance(refused, Refused)
    assert refused.kind == "charge_month"
    assert await ledger.settle(end(running, 10))
    assert (await _left(db))["extra"] == (70_000, 0)
    assert (await verify(db)).whole


async def test_call_is_clamped_to_plan_and_grants_together(
    clocked: Clocked, clock: FakeClock
) -> None:
    db, ledger = clocked
    await _grant(db, clock, "extra", 400_000)
    hold = await hold_of(ledger, ask("a", limit=500_000))
    assert (hold.limit, hold.charge_held_nanos) == (400, 900_000)


async def test_every_window_of_money_leaves_the_rest_to_grants(
    clocked: Clocked, clock: FakeClock
) -> None:
    db, ledger = clocked
    await _grant(db, clock, "extra", 9_000_000)
    op = ask("a", limit=1_500_000)
    month = op.windows[0]
    day = replace(month, kind="charge_day", limit=300_000)
    hold = await hold_of(ledger, replace(op, windows=(*op.windows, day)))
    held = await windows(db)
    assert (held["charge_day"], held["charge_month"]) == ((0, 300_000), (0, 300_000))
    assert await ledger.settle(end(hold, 500))
    assert (await windows(db))["charge_day"] == (300_000, 0)
    assert (await _left(db))["extra"] == (750_000, 0)
    assert (await verify(db)).whole


async def test_many_calls_at_once_never_take_more_than_a_grant_has(
    clocked: Clocked, clock: FakeClock
) -> None:
    db, ledger = clocked
    await _grant(db, clock, "extra", 10_500_000)
    answers = await asyncio.gather(*(ledger.reserve(ask("a", limit=0)) for _ in range(20)))
    holds = [answer for answer in answers if isinstance(answer, Hold)]
    assert len(holds) == 5
    assert await asyncio.gather(*(ledger.settle(end(hold, 1_025)) for hold in holds)) == [True] * 5
    assert await _left(db) == {"extra": (10_500_000, 0)}
    assert (await verify(db)).whole


async def test_uses_of_a_grant_are_never_changed(clocked: Clocked, clock: FakeClock) -> None:
    db, ledger = clocked
    await _grant(db, clock, "extra", 3_000_000)
    assert await ledger.settle(end(await hold_of(ledger, ask("a", limit=0))))
    for statement in ("UPDATE grant_use SET amount_nanos = 0", "DELETE FROM grant_use"):
        with pytest.raises(DBAPIError, match="append-only"):
            async with db.transaction() as tx:
                await tx.execute(sql(statement))


async def test_proof_notices_a_grant_that_was_tampered_with(
    clocked: Clocked, clock: FakeClock
) -> None:
    db, ledger = clocked
    await _grant(db, clock, "extra", 3_000_000)
    assert await ledger.settle(end(await hold_of(ledger, ask("a", limit=0))))
    assert (await verify(db)).whole
    async with db.transaction() as tx:
        await tx.execute(sql("UPDATE credit_grant SET spent_nanos = spent_nanos - 7"))
    assert (await verify(db)).drift_nanos == 7


async def test_grant_by_the_same_id_is_made_once(house: House) -> None:
    request = wire.GrantRequest(amount_nanos=5, note="thanks")
    tenant, other = "a" * 16, "b" * 16
    made = await asyncio.gather(
        *(house.client.put_grant(tenant, "pay-1", request) for _ in range(5))
    )
    assert {grant.id for grant in made} == {"pay-1"}
    assert len(await house.client.grants(tenant)) == 1
    for who, what in ((other, request), (tenant, wire.GrantRequest(amount_nanos=6))):
        with pytest.raises(AlcoveError) as caught:
            await house.client.put_grant(who, "pay-1", what)
        assert (caught.value.code, caught.value.reason) == ("conflict", "grant")
    revoked = await house.client.revoke_grant(tenant, "pay-1")
    assert revoked.revoked_at is not None
    assert (await house.client.put_grant(tenant, "pay-1", request)).revoked_at is not None
    with pytest.raises(AlcoveError) as caught:
        await house.client.revoke_grant(other, "pay-1")
    assert caught.value.code == "not_found"


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"kind": "grace", "amount_nanos": 1}, "grace"),
        ({"kind": "grace", "amount_nanos": 1, "expires_at": 2**50}, "grace"),
        ({"amount_nanos": 1, "expires_at": 1}, "expires_at"),
    ],
)
async def test_grant_that_makes_no_sense_is_refused(
    house: House, request_: dict[str, object], reason: str
) -> None:
    with pytest.raises(AlcoveError) as caught:
        await house.client.put_grant("a" * 16, "g", wire.GrantRequest.model_validate(request_))
    assert (caught.value.code, caught.value.reason) == ("invalid", reason)


async def test_tenant_without_quota_is_served_by_its_grace_until_that_is_used_up(
    house: House, scripted: ScriptedProvider
) -> None:
    scripted.always(reply=lambda request: s.text("x").using(40, request.json["max_tokens"]))
    await house.connect(scripted)
    tenant = await house.tenant("free", charge_month_nanos=0)
    assert (await tenant.chat()).status == 402
    grace = wire.GrantRequest(
        kind="grace", amount_nanos=3_000_000, expires_at=2**50, note="card expired"
    )
    await house.client.put_grant(tenant.id, "grace-1", grace)
    assert (await house.client.quota(tenant.id)).credit_nanos == 3_000_000
    assert (await tenant.chat(max_tokens=1_000)).status == 200
    [entry] = await house.entries(tenant)
    assert entry["grant_nanos"] == entry["charge_nanos"] == 2_040_000
    assert (await house.client.quota(tenant.id)).credit_nanos == 960_000
    assert (await house.client.quota(tenant.id)).charge_month.spent_nanos == 0
    statuses = [(await tenant.chat(max_tokens=1_000)).status for _ in range(4)]
    assert statuses[-1] == 402
    assert (await house.verdict()).whole
