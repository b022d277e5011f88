"""Keys that people hold for some models only: whatever name, wire or fallback leads there, they call no other."""

import json
from typing import Any

import pytest

from infra.kit.errors import AlcoveError
from metering_proxy import wire
from tests import scripted as s
from tests.metering_proxy.house import MODEL, House, Tenant
from tests.scripted import ScriptedProvider

pytestmark = pytest.mark.thorough

_FIRST, _SECOND = f"scripted/{MODEL}", f"mistral/{MODEL}"
_SAID = [{"role": "user", "content": "hi"}]


async def _key(house: House, tenant: Tenant, *models: str) -> wire.NewApiKey:
    request = wire.ApiKeyRequest(name="script", models=list(models))
    return await house.client.create_api_key(tenant.id, request)


async def _status(tenant: Tenant, key: str, model: str) -> tuple[int, str | None]:
    body = {"model": model, "messages": _SAID}
    answer = await tenant.post("/v1/chat/completions", body, key=key)
    return answer.status, answer.headers.get("x-alcove-reason")


async def test_key_sees_and_calls_its_own_models_alone(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    await house.connect(scripted, "mistral")
    key = (await _key(house, tenant, "Mistral/*", "nobody/nothing")).key
    async with tenant.session.get(
        "http://localhost/v1/models", headers={"authorization": f"Bearer {key}"}
    ) as listed:
        assert [row["id"] for row in (await listed.json())["data"]] == [_SECOND]
    for name in ("default", MODEL, _FIRST, _FIRST.upper()):
        assert await _status(tenant, key, name) == (403, "model_not_allowed")
    assert scripted.requests == []
    scripted.always(reply=s.text("x").using(1, 1))
    assert await _status(tenant, key, _SECOND.upper()) == (200, None)
    assert await _status(tenant, tenant.key, _FIRST) == (200, None)


@pytest.mark.parametrize(
    ("kind", "path", "body", "member"),
    [
        ("openai_compatible", "/v1/responses", {"model": MODEL, "input": "hi"}, "error.code"),
        (
            "anthropic_compatible",
            "/v1/messages",
            {"model": MODEL, "max_tokens": 9, "messages": _SAID},
            "error.alcove_reason",
        ),
        (
            "google",
            f"/v1beta/models/{MODEL}:generateContent",
            {"contents": [{"parts": [{"text": "hi"}]}]},
            "error.details.0.reason",
        ),
    ],
)
async def test_refusal_is_in_the_callers_own_shape(
    house: House, scripted: ScriptedProvider, kind: str, path: str, body: Any, member: str
) -> None:
    await house.connect(scripted, kind)
    tenant = await house.tenant()
    answer = await tenant.post(path, body, key=(await _key(house, tenant, "other/*")).key)
    found: Any = json.loads(answer.body)
    for name in member.split("."):
        found = found[int(name)] if name.isdigit() else found[name]
    assert (answer.status, found.lower()) == (403, "model_not_allowed")
    assert answer.headers["x-should-retry"] == "false"
    assert await house.rows("SELECT * FROM reservation") == []
    assert scripted.requests == []


async def test_neither_fallback_nor_alias_leads_out_of_a_keys_models(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    await house.connect(scripted, "mistral")
    for name in (_FIRST, "fast"):
        await house.client.put_fallback(name, [_SECOND])
    key = (await _key(house, tenant, _FIRST)).key
    assert await _status(tenant, key, "fast") == (403, "model_not_allowed")
    scripted.then(reply=s.error(500))
    assert await _status(tenant, key, _FIRST) == (500, None)
    assert len(scripted.model_requests) == 1
    scripted.then(reply=s.error(500))
    scripted.then(reply=s.text("x").using(1, 1))
    assert await _status(tenant, tenant.key, _FIRST) == (200, None)


async def test_models_stay_with_a_key_that_is_rotated(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    old = await _key(house, tenant, "other/*")
    new = await house.client.rotate_api_key(tenant.id, old.id)
    assert [key.models for key in await house.client.api_keys(tenant.id)] == [["other/*"]] * 2
    await house.meter.keys.load()
    for key in (old, new):
        assert await _status(tenant, key.key, MODEL) == (403, "model_not_allowed")
    assert scripted.requests == []


@pytest.mark.parametrize("models", [[], [""], ["gpt-5"], ["a/b c"], ["a/b"] * 101, [7], "a/b"])
async def test_list_that_could_mean_nothing_is_refused(
    house: House, tenant: Tenant, models: Any
) -> None:
    with pytest.raises(AlcoveError) as caught:
        await house.client.service.call(
            "POST", f"/tenants/{tenant.id}/api-keys", body={"name": "k", "models": models}
        )
    assert caught.value.code == "invalid"
    assert await house.client.api_keys(tenant.id) == []
