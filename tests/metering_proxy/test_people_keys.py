"""Keys that people hold: shown once, rotated with a day's overlap, dead when revoked."""

import pytest

from infra.kit.clock import FakeClock
from infra.kit.errors import AlcoveError
from metering_proxy import api_keys, wire
from tests import scripted as s
from tests.metering_proxy.house import House, Tenant
from tests.scripted import ScriptedProvider

pytestmark = pytest.mark.thorough


async def _status(tenant: Tenant, key: str) -> int:
    body = {"model": "default", "messages": [{"role": "user", "content": "hi"}]}
    return (await tenant.post("/v1/chat/completions", body, key=key)).status


async def _made(house: House, tenant: Tenant, name: str = "laptop") -> wire.NewApiKey:
    return await house.client.create_api_key(tenant.id, wire.ApiKeyRequest(name=name))


async def test_key_opens_its_tenants_door_and_no_other(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.always(reply=s.text("x").using(1, 1))
    key = (await _made(house, tenant)).key
    assert await _status(tenant, key) == 200
    assert await _status(await house.tenant(), key) == 401
    [entry] = await house.entries(tenant)
    assert entry["account"] == tenant.id
    [row] = await house.rows("SELECT what, detail FROM audit")
    assert row["what"] == "stranger_key"
    assert "api key" in row["detail"]


async def test_key_is_told_once_and_then_only_its_last_four_characters(
    house: House, tenant: Tenant
) -> None:
    made = await _made(house, tenant)
    [listed] = await house.client.api_keys(tenant.id)
    assert (listed.name, listed.hint) == ("laptop", made.key[-4:])
    secret = made.key.encode()
    database = await house.rows("SELECT * FROM api_key")
    assert all(made.key not in str(row) for row in database)
    assert (
        secret
        not in (await house.client.service.call("GET", f"/tenants/{tenant.id}/api-keys"))["keys"]
        .__repr__()
        .encode()
    )


async def test_revoked_key_is_dead_at_once_and_its_row_stays(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    made = await _made(house, tenant)
    revoked = await house.client.revoke_api_key(tenant.id, made.id)
    again = await house.client.revoke_api_key(tenant.id, made.id)
    assert revoked.revoked_at == again.revoked_at is not None
    assert await _status(tenant, made.key) == 401
    assert [key.id for key in await house.client.api_keys(tenant.id)] == [made.id]
    with pytest.raises(AlcoveError) as caught:
        await house.client.rotate_api_key(tenant.id, made.id)
    assert (caught.value.code, caught.value.reason) == ("conflict", "ended")


async def test_rotated_key_works_beside_its_successor_for_a_day(
    timed: House, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    scripted.always(reply=s.text("x").using(1, 1))
    await timed.connect(scripted)
    tenant = await timed.tenant()
    old = await _made(timed, tenant)
    new = await timed.client.rotate_api_key(tenant.id, old.id)
    assert (new.replaces, new.name) == (old.id, "laptop")
    clock.advance(api_keys.OVERLAP_MS / 1000 - 1)
    assert [await _status(tenant, key.key) for key in (old, new)] == [200, 200]
    clock.advance(1)
    assert [await _status(tenant, key.key) for key in (old, new)] == [401, 200]
    assert len({row["account"] for row in await timed.entries(tenant, 3)}) == 1


async def test_key_that_ends_on_a_day_ends_by_itself(
    timed: House, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    scripted.always(reply=s.text("x").using(1, 1))
    await timed.connect(scripted)
    tenant = await timed.tenant()
    request = wire.ApiKeyRequest(name="guest", expires_at=clock.now_at() + 1_000)
    made = await timed.client.create_api_key(tenant.id, request)
    assert await _status(tenant, made.key) == 200
    clock.advance(1)
    assert await _status(tenant, made.key) == 401


async def test_somebody_elses_key_cannot_be_touched(house: House, tenant: Tenant) -> None:
    made = await _made(house, tenant)
    for act in (house.client.revoke_api_key, house.client.rotate_api_key):
        with pytest.raises(AlcoveError) as caught:
            await act("b" * 16, made.id)
        assert caught.value.code == "not_found"
    assert await house.client.api_keys("b" * 16) == []


async def test_there_are_only_so_many_keys(house: House, tenant: Tenant) -> None:
    for _ in range(api_keys.MOST):
        await _made(house, tenant)
    with pytest.raises(AlcoveError) as caught:
        await _made(house, tenant)
    assert (caught.value.code, caught.value.reason) == ("conflict", "keys")


async def test_key_that_has_ended_takes_no_place(
    timed: House, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    tenant = await timed.tenant()
    soon = wire.ApiKeyRequest(name="guest", expires_at=clock.now_at() + 1_000)
    for _ in range(api_keys.MOST):
        await timed.client.create_api_key(tenant.id, soon)
    with pytest.raises(AlcoveError):
        await _made(timed, tenant)
    clock.advance(1)
    assert (await _made(timed, tenant)).name == "laptop"


async def test_rotations_make_no_more_keys_than_there_may_be(
    timed: House, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    tenant = await timed.tenant()
    key = await _made(timed, tenant)
    for _ in range(api_keys.MOST - 1):
        key = await timed.client.rotate_api_key(tenant.id, key.id)
    with pytest.raises(AlcoveError) as caught:
        await timed.client.rotate_api_key(tenant.id, key.id)
    assert (caught.value.code, caught.value.reason) == ("conflict", "keys")
    clock.advance(api_keys.OVERLAP_MS / 1000)
    assert (await timed.client.rotate_api_key(tenant.id, key.id)).replaces == key.id


async def test_key_is_rotated_once_and_its_successor_lasts_as_long_as_it_would_have(
    timed: House, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    tenant, ends_at = await timed.tenant(), clock.now_at() + 90 * 86_400_000
    request = wire.ApiKeyRequest(name="laptop", expires_at=ends_at)
    first = await timed.client.create_api_key(tenant.id, request)
    second = await timed.client.rotate_api_key(tenant.id, first.id)
    with pytest.raises(
        AlcoveError
    ) as caught:  # whoever has lost the answer rotates what is in the list
        await timed.client.rotate_api_key(tenant.id, first.id)
    assert (caught.value.code, caught.value.reason) == ("conflict", "rotated")
    third = await timed.client.rotate_api_key(tenant.id, second.id)
    assert (second.expires_at, third.expires_at) == (ends_at, ends_at)
    ends = {key.id: key.expires_at for key in await timed.client.api_keys(tenant.id)}
    day_later = clock.now_at() + api_keys.OVERLAP_MS
    assert ends == {first.id: day_later, second.id: day_later, third.id: ends_at}


async def test_overlap_does_not_prolong_a_key_that_ends_sooner(
    timed: House, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    tenant, ends_at = await timed.tenant(), clock.now_at() + 60_000
    request = wire.ApiKeyRequest(name="guest", expires_at=ends_at)
    old = await timed.client.create_api_key(tenant.id, request)
    new = await timed.client.rotate_api_key(tenant.id, old.id)
    assert new.expires_at == ends_at
    assert {key.expires_at for key in await timed.client.api_keys(tenant.id)} == {ends_at}


@pytest.mark.parametrize("before_ms", [0, 1, 10**9])
async def test_key_that_would_be_over_is_not_made(
    timed: House, scripted: ScriptedProvider, clock: FakeClock, before_ms: int
) -> None:
    tenant = await timed.tenant()
    over = wire.ApiKeyRequest(name="guest", expires_at=max(0, clock.now_at() - before_ms))
    with pytest.raises(AlcoveError) as caught:
        await timed.client.create_api_key(tenant.id, over)
    assert (caught.value.code, caught.value.reason) == ("invalid", "expires_at")
    assert await timed.client.api_keys(tenant.id) == []


async def test_last_use_is_told_of_the_key_that_opened_its_door(
    timed: House, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    scripted.always(reply=s.text("x").using(1, 1))
    await timed.connect(scripted)
    tenant, stranger = await timed.tenant(), await timed.tenant()
    used, unused = await _made(timed, tenant, "used"), await _made(timed, tenant, "unused")
    assert await _status(tenant, used.key) == 200
    first_at = clock.now_at()
    await timed.meter.keys.tell_used()
    clock.advance(3600)
    assert await _status(stranger, unused.key) == 401
    await timed.meter.keys.tell_used()
    told = {key.name: key.last_used_at for key in await timed.client.api_keys(tenant.id)}
    assert told == {"used": first_at, "unused": None}
    assert await _status(tenant, used.key) == 200
    await timed.meter.keys.tell_used()
    [key] = [k for k in await timed.client.api_keys(tenant.id) if k.name == "used"]
    assert key.last_used_at == clock.now_at()
