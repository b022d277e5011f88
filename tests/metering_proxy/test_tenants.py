"""What the gateway decides about tenants: the highest version wins, and who was never heard of is free."""

import pytest

from infra.kit import ids
from infra.kit.errors import AlcoveError
from metering_proxy import wire
from tests.metering_proxy.house import House


def _state(version: int, plan: str = "plus", **quota: int | None) -> wire.TenantState:
    override = wire.QuotaOverride(**quota)
    return wire.TenantState(plan=plan, status="active", version=version, quota=override)


async def test_tenant_that_nobody_named_is_free_and_active(both: House) -> None:
    quota = await both.client.quota(ids.tenant_id())
    assert (quota.plan, quota.status) == ("free", "active")
    assert quota.charge_month.limit_nanos == 1_000_000_000
    assert quota.charge_month.spent_nanos == quota.charge_month.held_nanos == 0
    assert (quota.requests_minute.limit, quota.concurrent.limit) == (20, 2)


async def test_highest_version_wins_whatever_the_order(both: House) -> None:
    tenant = ids.tenant_id()
    await both.client.put_tenant(tenant, _state(7))
    kept = await both.client.put_tenant(tenant, _state(5, plan="free"))
    assert (kept.plan, kept.version) == ("plus", 7)
    again = await both.client.put_tenant(tenant, _state(7, plan="free"))
    assert (again.plan, again.version) == ("plus", 7)
    assert (await both.client.quota(tenant)).plan == "plus"
    newer = await both.client.put_tenant(tenant, _state(8, plan="free"))
    assert (newer.plan, newer.version) == ("free", 8)


@pytest.mark.parametrize(
    ("quota", "limit"),
    [({}, 20_000_000_000), ({"charge_month_nanos": 5}, 5), ({"charge_month_nanos": None}, None)],
)
async def test_override_replaces_the_plans_limit_only_where_it_is_named(
    house: House, quota: dict[str, int | None], limit: int | None
) -> None:
    tenant = ids.tenant_id()
    kept = await house.client.put_tenant(tenant, _state(1, **quota))
    assert kept.quota.model_dump(exclude_unset=True) == quota
    assert (await house.client.quota(tenant)).charge_month.limit_nanos == limit


async def test_decisions_are_remembered_when_they_are_read_anew(both: House) -> None:
    tenant = ids.tenant_id()
    await both.client.put_tenant(tenant, _state(3, charge_month_nanos=9))
    await both.meter.tenants.load()
    standing = both.meter.tenants.standing(tenant)
    assert (standing.plan.name, standing.version, standing.limit("charge_month")) == ("plus", 3, 9)


async def test_unknown_plan_and_bad_id_are_refused(house: House) -> None:
    with pytest.raises(AlcoveError) as caught:
        await house.client.put_tenant(ids.tenant_id(), _state(1, plan="gold"))
    assert (caught.value.code, caught.value.reason) == ("invalid", "plan")
    with pytest.raises(AlcoveError) as caught:
        await house.client.put_tenant("..", _state(1))
    assert caught.value.code in ("invalid", "not_found")


async def test_deleted_tenant_gets_no_key(house: House) -> None:
    tenant = ids.tenant_id()
    await house.client.put_tenant(
        tenant, wire.TenantState(plan="free", status="deleted", version=1)
    )
    directory = house.root / "s" / "t" / tenant / "1" / "meter"
    directory.mkdir(parents=True)
    with pytest.raises(AlcoveError) as caught:
        await house.client.mint_key(tenant, 1, str(directory))
    assert (caught.value.code, caught.value.reason) == ("forbidden", "deleted")
