"""What the gateway's pages rely on about people's keys, credit and calls: of a real meter and of the fake one."""

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

DOLLAR = 1_000_000_000


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


async def test_key_for_a_program_is_told_once_rotated_and_ended(meter: MeterClient) -> None:
    tenant = ids.tenant_id()
    asked = wire.ApiKeyRequest(name="laptop", models=["anthropic/*"])
    made = await meter.create_api_key(tenant, asked)
    [listed] = await meter.api_keys(tenant)
    assert made.key not in listed.model_dump_json()
    assert (listed.name, listed.hint, listed.models) == ("laptop", made.key[-4:], ["anthropic/*"])
    second = await meter.rotate_api_key(tenant, made.id)
    assert (second.name, second.replaces, second.models) == ("laptop", made.id, ["anthropic/*"])
    with pytest.raises(AlcoveError) as again:
        await meter.rotate_api_key(tenant, made.id)
    assert (again.value.code, again.value.reason) == ("conflict", "rotated")
    newest, oldest = await meter.api_keys(tenant)
    assert (newest.id, oldest.id) == (second.id, made.id)
    assert oldest.expires_at is not None, "the old one works on, but not for ever"
    assert (await meter.revoke_api_key(tenant, made.id)).revoked_at is not None
    with pytest.raises(AlcoveError) as ended:
        await meter.rotate_api_key(tenant, made.id)
    assert ended.value.code == "conflict"
    with pytest.raises(AlcoveError) as strange:
        await meter.revoke_api_key(ids.tenant_id(), second.id)
    assert strange.value.code == "not_found"


async def test_credit_is_given_once_by_its_id_and_taken_back(meter: MeterClient) -> None:
    tenant, grant = ids.tenant_id(), ids.ulid()
    asked = wire.GrantRequest(amount_nanos=5 * DOLLAR, note="sorry")
    for _ in range(2):
        assert (await meter.put_grant(tenant, grant, asked)).amount_nanos == 5 * DOLLAR
    assert (await meter.quota(tenant)).credit_nanos == 5 * DOLLAR
    with pytest.raises(AlcoveError) as other:
        await meter.put_grant(tenant, grant, wire.GrantRequest(amount_nanos=DOLLAR))
    assert other.value.code == "conflict"
    with pytest.raises(AlcoveError) as strange:
        await meter.revoke_grant(ids.tenant_id(), grant)
    assert strange.value.code == "not_found"
    await meter.revoke_grant(tenant, grant)
    [kept] = await meter.grants(tenant)
    assert kept.revoked_at is not None
    assert (await meter.quota(tenant)).credit_nanos == 0


async def test_nothing_is_known_of_a_tenant_that_did_nothing(meter: MeterClient) -> None:
    tenant = ids.tenant_id()
    state = wire.TenantState(plan="free", status="active", version=1, egress=True)
    await meter.put_tenant(tenant, state)
    assert (await meter.egress_day(tenant)).allowed
    assert await meter.own_keys(tenant) == []
    assert await meter.api_keys(tenant) == []
    assert await meter.all_marks() == []
    assert (await meter.requests(tenant=tenant)).rows == []
    with pytest.raises(AlcoveError) as unknown:
        await meter.request(ids.ulid())
    assert unknown.value.code == "not_found"


async def test_chain_of_no_models_is_gone(meter: MeterClient) -> None:
    assert (await meter.put_fallback("best", [])).targets == []
    assert await meter.fallbacks() == []
