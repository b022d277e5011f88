"""The same thing decided by many at the same time: none fails, one stands, nothing is counted past its bound."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from infra.kit.errors import AlcoveError
from metering_proxy import api_keys, wire
from tests.metering_proxy.house import MODEL, ROW, House
from tests.scripted import ScriptedProvider

_AT_ONCE = 12
_A = "a" * 16
_ALIAS = [f"scripted/{MODEL}"]


async def _connection(house: House, n: int) -> None:
    given = wire.TokenConnectionRequest(origin="https://a.example", token=f"token-{n}")
    await house.client.put_token_connection(_A, "hub", given)


async def _tenant(house: House, n: int) -> None:
    quota = wire.QuotaOverride(requests_day=n)
    state = wire.TenantState(plan="plus", status="active", version=n, quota=quota)
    await house.client.put_tenant(_A, state)


async def _instance_key(house: House, n: int) -> None:
    directory = house.root / "s" / "t" / _A / "1" / "meter"
    directory.mkdir(parents=True, exist_ok=True)
    await house.client.mint_key(_A, 1, str(directory))


async def _provider(house: House, n: int) -> None:
    dearer = ROW.model_copy(update={"input_nanos": 1_000 + n})
    await house.client.change_provider("scripted", wire.ProviderChange(models=[dearer]))


EDITS: dict[str, tuple[Callable[[House, int], Awaitable[Any]], str]] = {
    "connection": (_connection, "token_connection"),
    "tenant": (_tenant, "tenant"),
    "instance key": (_instance_key, "instance_key"),
    "models of a provider": (_provider, "provider_model"),
    "own key": (
        lambda house, n: house.client.put_own_key(_A, "scripted", f"sk-own-key-{n:04}"),
        "own_key",
    ),
    "chain": (lambda house, n: house.client.put_fallback("fast", _ALIAS), "fallback"),
    "grant": (
        lambda house, n: house.client.put_grant(_A, "g", wire.GrantRequest(amount_nanos=5)),
        "credit_grant",
    ),
}


@pytest.mark.parametrize("name", EDITS)
async def test_same_thing_is_written_once_however_many_write_it(
    both: House, scripted: ScriptedProvider, name: str
) -> None:
    await both.connect(scripted)
    edit, table = EDITS[name]
    await asyncio.gather(*(edit(both, n) for n in range(_AT_ONCE)))
    assert len(await both.rows(f"SELECT * FROM {table}")) == 1


async def test_newest_decision_stands_and_each_that_counted_is_written_down(
    both: House, scripted: ScriptedProvider
) -> None:
    await asyncio.gather(*(_tenant(both, n) for n in range(_AT_ONCE)))
    kept = both.meter.tenants.standing(_A)
    assert (kept.version, kept.limit("requests_day")) == (_AT_ONCE - 1, _AT_ONCE - 1)
    rows = (await both.client.audit(tenant=_A)).rows
    assert len({row.detail for row in rows}) == len(rows) >= 1


async def test_providers_made_at_once_have_ids_of_their_own(
    both: House, scripted: ScriptedProvider
) -> None:
    made = await asyncio.gather(*(both.connect(scripted) for _ in range(_AT_ONCE)))
    assert len(set(made)) == _AT_ONCE


async def test_no_more_keys_are_made_at_once_than_there_may_be(
    both: House, scripted: ScriptedProvider
) -> None:
    many = (
        both.client.create_api_key(_A, wire.ApiKeyRequest(name=f"k{n}"))
        for n in range(api_keys.MOST + 6)
    )
    found = await asyncio.gather(*many, return_exceptions=True)
    refused = [error for error in found if isinstance(error, AlcoveError)]
    assert [error.reason for error in refused] == ["keys"] * 6
    assert len(await both.client.api_keys(_A)) == api_keys.MOST


async def test_key_is_rotated_by_one_of_many_that_ask_at_once(
    both: House, scripted: ScriptedProvider
) -> None:
    key = await both.client.create_api_key(_A, wire.ApiKeyRequest(name="laptop"))
    many = (both.client.rotate_api_key(_A, key.id) for _ in range(_AT_ONCE))
    found = await asyncio.gather(*many, return_exceptions=True)
    made = [one for one in found if isinstance(one, wire.NewApiKey)]
    assert len(made) == 1
    assert {getattr(one, "reason", None) for one in found if one is not made[0]} == {"rotated"}
    assert len(await both.client.api_keys(_A)) == 2
