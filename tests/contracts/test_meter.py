"""What the gateway relies on, asked of a real meter and of the gateway's fake one, over their sockets."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from infra.kit import ids
from infra.kit.errors import AlcoveError
from metering_proxy import wire
from metering_proxy.client import MeterClient
from tests.gateway.fake_meter import FakeMeter
from tests.metering_proxy.house import SECRET, a_house
from tests.quickly import serving
from tests.scripted import ScriptedProvider

KEY = "sk-provider-key-1234"


@pytest.fixture(params=["real", "fake"])
async def meter(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MeterClient]:
    if request.param == "real":
        async with a_house(tmp_path, f"sqlite:///{tmp_path}/meter.db") as house:
            yield house.client
        return
    async with serving(FakeMeter(SECRET).app, f"unix://{tmp_path}/meter.sock") as url:
        client = MeterClient(url, SECRET)
        yield client
        await client.close()


def _state(plan: str, version: int, quota: wire.QuotaOverride | None = None) -> wire.TenantState:
    return wire.TenantState(
        plan=plan, status="active", version=version, quota=quota or wire.QuotaOverride()
    )


async def test_highest_version_wins_and_the_row_kept_is_answered(meter: MeterClient) -> None:
    tenant = ids.tenant_id()
    assert (await meter.put_tenant(tenant, _state("free", 1))).version == 1
    assert (await meter.put_tenant(tenant, _state("plus", 3))).plan == "plus"
    late = await meter.put_tenant(tenant, _state("free", 2))
    assert (late.plan, late.version) == ("plus", 3)
    again = await meter.put_tenant(tenant, _state("free", 3))
    assert (again.plan, again.version) == ("plus", 3)


async def test_plan_that_does_not_exist_is_refused(meter: MeterClient) -> None:
    with pytest.raises(AlcoveError) as caught:
        await meter.put_tenant(ids.tenant_id(), _state("no-such-plan", 1))
    assert caught.value.code == "invalid"


async def test_quota_is_the_plans_until_it_is_set_by_hand(meter: MeterClient) -> None:
    tenant = ids.tenant_id()
    unheard = await meter.quota(tenant)
    assert (unheard.plan, unheard.status) == ("free", "active")
    assert unheard.charge_month.limit_nanos == 1_000_000_000
    assert (unheard.charge_month.spent_nanos, unheard.charge_month.held_nanos) == (0, 0)
    by_hand = wire.QuotaOverride(charge_month_nanos=5_000_000_000)
    await meter.put_tenant(tenant, _state("free", 1, by_hand))
    assert (await meter.quota(tenant)).charge_month.limit_nanos == 5_000_000_000
    without = wire.QuotaOverride(charge_month_nanos=None)
    await meter.put_tenant(tenant, _state("free", 2, without))
    assert (await meter.quota(tenant)).charge_month.limit_nanos is None
    await meter.put_tenant(tenant, _state("plus", 3))
    quota = await meter.quota(tenant)
    assert (quota.plan, quota.charge_month.limit_nanos) == ("plus", 20_000_000_000)


async def test_usage_of_nothing_is_no_rows_and_zero_totals(meter: MeterClient) -> None:
    found = await meter.usage(from_at=0, to_at=86_400_000, zone="Europe/Berlin")
    assert (found.zone, found.rows, found.totals.requests) == ("Europe/Berlin", [], 0)
    with pytest.raises(AlcoveError) as caught:
        await meter.usage(from_at=0, to_at=1, zone="Nowhere/City")
    assert caught.value.code == "invalid"


async def test_page_of_tenants_has_those_asked_for_though_never_heard_of(
    meter: MeterClient,
) -> None:
    wanted = sorted(ids.tenant_id() for _ in range(3))
    await meter.put_tenant(wanted[0], _state("plus", 1))
    seen: list[str] = []
    for offset in (0, 2):
        query = wire.TenantsQuery(ids=wanted, order="asc", offset=offset, limit=2)
        page = await meter.query_tenants(query)
        assert page.total == 3
        assert page.totals.charge_month_nanos == 0
        seen += [row.tenant for row in page.rows]
    assert sorted(seen) == wanted
    limits = {row.tenant: row.quota_limit_nanos for row in page.rows}
    assert set(limits.values()) <= {1_000_000_000, 20_000_000_000}
    none = await meter.query_tenants(wire.TenantsQuery(ids=[]))
    assert (none.rows, none.total) == ([], 0)


async def test_plans_begin_with_the_free_one(meter: MeterClient) -> None:
    plans = await meter.plans()
    assert [plan.name for plan in plans] == ["free", "plus"]
    assert plans[0].charge_month_nanos == 1_000_000_000


async def test_provider_is_listed_without_its_key_until_it_is_deleted(
    meter: MeterClient, scripted: ScriptedProvider
) -> None:
    row = wire.ModelRow(id="a/b", input_nanos=1_000, output_nanos=2_000)
    new = wire.NewProvider(
        kind="openai_compatible", name="Ours", base_url=scripted.url, key=KEY, models=[row]
    )
    made = await meter.create_provider(new)
    assert (made.name, made.key_hint) == ("Ours", "1234")
    [listed] = [each for each in await meter.providers() if each.id == made.id]
    assert KEY not in listed.model_dump_json()
    assert [each.id for each in listed.rows] == ["a/b"]
    renamed = await meter.change_provider(made.id, wire.ProviderChange(name="Renamed"))
    assert (renamed.name, renamed.key_hint) == ("Renamed", "1234")
    chosen = await meter.change_provider(made.id, wire.ProviderChange(make_default=True))
    assert chosen.is_default
    await meter.delete_provider(made.id)
    assert made.id not in [each.id for each in await meter.providers()]


async def test_provider_without_its_key_is_refused_at_that_field(meter: MeterClient) -> None:
    with pytest.raises(AlcoveError) as caught:
        await meter.create_provider(wire.NewProvider(kind="openai", name="OpenAI"))
    assert caught.value.code == "invalid"
    assert [each["field"] for each in caught.value.details["fields"]] == ["key"]
    assert "OpenAI" not in [each.name for each in await meter.providers()]


async def test_unknown_provider_is_not_found(meter: MeterClient) -> None:
    for act in (
        meter.delete_provider("nobody"),
        meter.probe_provider("nobody"),
        meter.change_provider("nobody", wire.ProviderChange(name="x")),
    ):
        with pytest.raises(AlcoveError) as caught:
            await act
        assert caught.value.code == "not_found"


async def test_call_is_refused_when_the_secret_is_wrong(meter: MeterClient) -> None:
    stranger = MeterClient(meter.service._url, "another secret of thirty-two chars")
    with pytest.raises(AlcoveError) as caught:
        await stranger.plans()
    await stranger.close()
    assert caught.value.code == "unauthorized"
