"""Chains of which a tenant's own key pays some models and the operator the others: nobody pays for another."""

from itertools import product

import pytest

from infra.kit.errors import AlcoveError
from metering_proxy import wire
from tests import scripted as s
from tests.metering_proxy.house import MODEL, ROW, House
from tests.scripted import ScriptedProvider

_NAMES = ("one", "two", "three")


async def _three(house: House, scripted: ScriptedProvider) -> None:
    """Three connections to the same server, in one chain; the server tells them by their keys."""
    for name in _NAMES:
        new = wire.NewProvider(
            kind="openai_compatible",
            name=name,
            base_url=scripted.url,
            key=f"sk-operators-{name}",
            models=[ROW],
        )
        assert (await house.client.create_provider(new)).id == name
    chain = [f"{name}/{MODEL}" for name in _NAMES[1:]]
    await house.client.put_fallback(f"one/{MODEL}", chain)


@pytest.mark.thorough
@pytest.mark.parametrize("own", list(product([False, True], repeat=3)), ids=str)
async def test_only_who_pays_for_the_first_is_asked_to_pay_for_the_next(
    house: House, scripted: ScriptedProvider, own: tuple[bool, ...]
) -> None:
    await _three(house, scripted)
    # Nothing is left of the money, where the tenant pays the first itself: it must not matter.
    tenant = await house.tenant("plus", charge_month_nanos=0 if own[0] else None)
    for name, is_own in zip(_NAMES, own, strict=True):
        if is_own:
            await house.client.put_own_key(tenant.id, name, f"sk-tenants-{name}")
    scripted.always(reply=s.error(503))
    answer = await tenant.chat(model=f"one/{MODEL}")
    assert answer.status == 503
    whose = "tenants" if own[0] else "operators"
    expected = [f"Bearer sk-{whose}-{n}" for n, o in zip(_NAMES, own, strict=True) if o == own[0]]
    assert [r.headers["authorization"] for r in scripted.model_requests] == expected
    rows = await house.entries(tenant, len(expected))
    assert {row["payer"] for row in rows} == {"tenant" if own[0] else "operator"}
    assert sum(row["charge_nanos"] for row in rows) == 0


async def test_own_key_further_down_the_chain_charges_nothing_when_it_answers(
    house: House, scripted: ScriptedProvider
) -> None:
    await _three(house, scripted)
    tenant = await house.tenant("plus", charge_month_nanos=0)
    for name in ("one", "three"):
        await house.client.put_own_key(tenant.id, name, f"sk-tenants-{name}")
    scripted.then(reply=s.error(503))
    scripted.then(reply=s.text("x").using(100, 50))
    answer = await tenant.chat(model=f"one/{MODEL}")
    assert (answer.status, answer.headers["x-alcove-model"]) == (200, f"three/{MODEL}")
    rows = await house.entries(tenant, 2)
    assert [(row["kind"], row["payer"], row["charge_nanos"]) for row in rows] == [
        ("attempt", "tenant", 0),
        ("usage", "tenant", 0),
    ]
    assert rows[-1]["cost_nanos"] == 200_000
    assert (await house.verdict()).whole


@pytest.mark.parametrize("name", [MODEL, MODEL.upper(), "default", "Default"])
async def test_chain_is_refused_for_a_name_that_means_a_model_already(
    house: House, scripted: ScriptedProvider, name: str
) -> None:
    await _three(house, scripted)
    with pytest.raises(AlcoveError) as caught:
        await house.client.put_fallback(name, [f"two/{MODEL}"])
    assert caught.value.code == "invalid"
    assert [item["field"] for item in caught.value.details["fields"]] == ["name"]
    assert (await house.client.put_fallback(name, [])).targets == []
    assert len(await house.client.fallbacks()) == 1


@pytest.mark.parametrize("status", ["suspended", "deleted"])
async def test_models_are_not_listed_for_who_may_not_call_them(
    house: House, scripted: ScriptedProvider, status: wire.Status
) -> None:
    await house.connect(scripted)
    tenant = await house.tenant()
    key = await house.client.create_api_key(tenant.id, wire.ApiKeyRequest(name="laptop"))
    state = wire.TenantState(plan="free", status=status, version=1)
    await house.client.put_tenant(tenant.id, state)
    for shown in (tenant.key, key.key):
        headers = {"authorization": f"Bearer {shown}"}
        async with tenant.session.get("http://localhost/v1/models", headers=headers) as listed:
            assert (listed.status, listed.headers["x-alcove-reason"]) == (403, status)
