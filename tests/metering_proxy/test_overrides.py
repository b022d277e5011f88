"""What an admin grants one tenant in the place of its plan: any limit, until a day, written down."""

import json
from typing import get_args

import pytest

from infra.kit.clock import FakeClock
from metering_proxy import wire
from metering_proxy.ledger.windows import Period
from metering_proxy.plans import Measure
from tests import scripted as s
from tests.metering_proxy.house import House, Tenant
from tests.scripted import ScriptedProvider

_REFUSED = {
    "charge_minute_nanos": (429, "charge_minute"),
    "charge_day_nanos": (402, "quota_charge_day"),
    "charge_month_nanos": (402, "quota_charge_month"),
    "tokens_minute": (429, "tokens_minute"),
    "tokens_day": (402, "quota_tokens_day"),
    "tokens_month": (402, "quota_tokens_month"),
    "requests_minute": (429, "requests_minute"),
    "requests_day": (402, "quota_requests_day"),
    "requests_month": (402, "quota_requests_month"),
    "concurrent": (429, "concurrent_calls"),
}


async def _said(tenant: Tenant) -> tuple[int, str | None]:
    answer = await tenant.chat(max_tokens=300)
    return answer.status, answer.headers.get("x-alcove-reason")


async def _decide(house: House, tenant: Tenant, version: int, **quota: int | str | None) -> None:
    override = wire.QuotaOverride.model_validate(quota)
    state = wire.TenantState(plan="plus", status="active", version=version, quota=override)
    await house.client.put_tenant(tenant.id, state)


def test_every_limit_that_a_plan_can_have_can_be_overridden() -> None:
    of_plans = {f"{m}_{p}" for m in get_args(Measure) for p in get_args(Period)} | {"concurrent"}
    every = wire.QuotaOverride.model_validate(dict.fromkeys(_REFUSED, 1))
    assert every.limits().keys() == of_plans
    assert wire.QuotaOverride.model_fields.keys() - _REFUSED.keys() == {"until_at", "note"}


@pytest.mark.thorough
@pytest.mark.parametrize("name", _REFUSED)
async def test_lowered_limit_refuses_and_lifted_one_does_not(
    house: House, tenant: Tenant, scripted: ScriptedProvider, name: str
) -> None:
    scripted.always(reply=s.text("x").using(10, 1))
    await _decide(house, tenant, 1, **{name: 0})
    assert await _said(tenant) == _REFUSED[name]
    assert scripted.requests == []
    await _decide(house, tenant, 2, **{name: None})
    assert await _said(tenant) == (200, None)
    await house.entries(tenant)
    quota = await house.client.quota(tenant.id)
    kind = name.removesuffix("_nanos")
    limits = {limit.kind: limit.limit for limit in quota.limits}
    assert {**limits, "concurrent": quota.concurrent.limit}.get(kind) is None
    await _decide(house, tenant, 3, **{name: 7_000_000})
    limits = {limit.kind: limit.limit for limit in (await house.client.quota(tenant.id)).limits}
    concurrent = (await house.client.quota(tenant.id)).concurrent.limit
    assert {**limits, "concurrent": concurrent}[kind] == 7_000_000
    assert await _said(tenant) == (200, None)


async def test_what_a_lifted_limit_did_not_stop_counts_when_it_is_back(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.always(reply=s.text("x").using(10, 1))
    await _decide(house, tenant, 1, requests_minute=None)
    for _ in range(3):
        assert await _said(tenant) == (200, None)
    await house.entries(tenant, 3)
    await _decide(house, tenant, 2, requests_minute=3)
    assert await _said(tenant) == _REFUSED["requests_minute"]


async def test_override_ends_on_its_day(
    timed: House, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    scripted.always(reply=s.text("x").using(10, 1))
    await timed.connect(scripted)
    tenant = await timed.tenant()
    until_at = clock.now_at() + 5_000
    await _decide(timed, tenant, 1, charge_month_nanos=0, concurrent=1, until_at=until_at)
    assert await _said(tenant) == _REFUSED["charge_month_nanos"]
    clock.advance(4.999)
    assert await _said(tenant) == _REFUSED["charge_month_nanos"]
    clock.advance(0.001)
    assert await _said(tenant) == (200, None)
    await timed.entries(tenant)
    await timed.meter.tenants.load()
    quota = await timed.client.quota(tenant.id)
    assert quota.charge_month.limit_nanos == 20_000_000_000
    assert quota.concurrent.limit == 6


async def test_every_change_of_limits_is_written_down_once(both: House) -> None:
    tenant = await both.tenant()
    grown = {"tokens_day": 5, "until_at": 2**45, "note": "asked by mail"}
    await _decide(both, tenant, 2, **grown)
    await _decide(both, tenant, 1, tokens_day=9)  # an older decision, come late
    await _decide(both, tenant, 3, **grown)
    await _decide(both, tenant, 4)
    rows = await both.rows("SELECT tenant, detail FROM audit WHERE what = 'quota_override'")
    told = sorted((json.loads(row["detail"]) for row in rows), key=lambda one: one["version"])
    assert told == [
        {"version": 2, "was": {}, "now": grown},
        {"version": 4, "was": grown, "now": {}},
    ]
    assert {row["tenant"] for row in rows} == {tenant.id}
