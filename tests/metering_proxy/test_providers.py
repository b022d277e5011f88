"""Connections: sealed, live at once, priced from a moment on; and the models of this machine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from infra.kit import service
from infra.kit.client import ServiceClient
from infra.kit.clock import FakeClock
from infra.kit.errors import AlcoveError
from metering_proxy import wire
from tests import scripted as s
from tests.metering_proxy.house import MODEL, ROW, SECRET, House, a_house
from tests.scripted import ScriptedProvider

pytestmark = pytest.mark.thorough

_KEY = "sk-a-very-secret-key-9876"


@asynccontextmanager
async def a_local_server(
    models: list[str], where: str = "http://127.0.0.1:0"
) -> AsyncIterator[str]:
    """A server of this machine that lists models and says that it is well."""
    app = FastAPI(openapi_url=None)

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/v1/models")
    async def listed() -> dict[str, Any]:
        return {"data": [{"id": name} for name in models]}

    @app.post("/v1/chat/completions")
    async def chat() -> dict[str, Any]:
        message = {"role": "assistant", "content": "hi"}
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        return {"choices": [{"message": message}], "usage": usage}

    @app.post("/v1/embeddings")
    async def embed() -> dict[str, Any]:
        return {"data": [{"embedding": [0.5]}], "usage": {"prompt_tokens": 3, "total_tokens": 3}}

    async with service.serving(app, where) as url:
        yield url


def _new(url: str, **more: Any) -> wire.NewProvider:
    values = {"kind": "openai_compatible", "name": "My server", "base_url": url, "key": _KEY}
    return wire.NewProvider.model_validate({**values, "models": [ROW], **more})


async def test_key_goes_in_sealed_and_never_comes_out(
    both: House, scripted: ScriptedProvider
) -> None:
    made = await both.client.create_provider(_new(scripted.url))
    assert (made.id, made.key_hint, made.base_url) == ("my-server", "9876", scripted.base_url)
    everything = str([p.model_dump() for p in await both.client.providers()])
    assert _KEY not in everything
    [row] = await both.rows("SELECT * FROM provider")
    assert _KEY not in str(row)
    assert row["sealed_key"].startswith("v1.")
    assert _KEY not in repr(both.meter.providers.get("my-server"))
    scripted.then(reply=s.text("x"))
    await both.meter.providers.load()
    assert (await (await both.tenant()).chat()).status == 200
    assert scripted.requests[-1].headers["authorization"] == f"Bearer {_KEY}"


async def test_connection_is_live_and_gone_at_once(
    house: House, scripted: ScriptedProvider
) -> None:
    tenant = await house.tenant()
    nothing = await tenant.chat(model="default")
    assert (nothing.status, nothing.headers["x-alcove-reason"]) == (503, "no_provider")
    made = await house.client.create_provider(_new(scripted.url))
    scripted.always(reply=s.text("x"))
    assert (await tenant.chat(model="default")).status == 200
    await house.client.change_provider(made.id, wire.ProviderChange(enabled=False))
    assert (await tenant.chat(model="default")).status == 503
    await house.client.change_provider(
        made.id, wire.ProviderChange(enabled=True, key="sk-new-key-00001111")
    )
    assert (await tenant.chat(model="default")).status == 200
    assert scripted.requests[-1].headers["authorization"] == "Bearer sk-new-key-00001111"
    await house.client.delete_provider(made.id)
    assert (await tenant.chat(model="default")).status == 503
    with pytest.raises(AlcoveError) as caught:
        await house.client.delete_provider(made.id)
    assert caught.value.code == "not_found"


async def test_default_is_the_connection_that_was_made_default(
    house: House, scripted: ScriptedProvider
) -> None:
    first = await house.client.create_provider(_new(scripted.url, name="first"))
    second = await house.client.create_provider(_new(scripted.url, name="second"))
    assert [p.is_default for p in await house.client.providers()] == [True, False]
    await house.client.change_provider(second.id, wire.ProviderChange(make_default=True))
    models = await house.client.models()
    assert [m.id for m in models if m.alcove.default] == ["second/scripted-model"]
    tenant = await house.tenant()
    scripted.then(reply=s.text("x"))
    await tenant.chat(model="default")
    [entry] = await house.entries(tenant)
    assert (entry["provider"], entry["model"]) == ("second", "second/scripted-model")
    assert first.id == "first"


async def test_probe_says_what_one_real_call_found(
    house: House, scripted: ScriptedProvider
) -> None:
    good = await house.client.create_provider(_new(scripted.url, name="good"))
    probe = await house.client.probe_provider(good.id)
    assert (probe.ok, probe.models) == (True, 1)
    assert probe.latency_ms is not None
    assert scripted.requests[-1].headers["authorization"] == f"Bearer {_KEY}"
    dead = await house.client.create_provider(_new("http://127.0.0.1:9", name="dead"))
    probe = await house.client.probe_provider(dead.id)
    assert (probe.ok, probe.detail) == (False, "nobody answers there")
    shown = {p.id: p.probe.ok if p.probe else None for p in await house.client.providers()}
    assert shown == {"good": True, "dead": False}


async def test_new_price_begins_now_and_old_entries_keep_theirs(
    timed: House, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    scripted.always(reply=s.text("x").using(10, 0))
    made = await timed.client.create_provider(_new(scripted.url))
    tenant = await timed.tenant()
    await tenant.chat()
    clock.advance(60)
    dearer = ROW.model_copy(update={"input_nanos": 5_000_000_000})
    await timed.client.change_provider(made.id, wire.ProviderChange(models=[dearer]))
    await tenant.chat()
    first, second = await timed.entries(tenant, 2)
    assert (first["charge_nanos"], second["charge_nanos"]) == (10_000, 50_000)
    assert first["price_id"] != second["price_id"]
    rows = await timed.rows("SELECT input_nanos FROM provider_price ORDER BY from_at")
    assert [row["input_nanos"] for row in rows] == [1_000_000_000, 5_000_000_000]
    await timed.client.change_provider(made.id, wire.ProviderChange(models=[dearer]))
    assert len(await timed.rows("SELECT * FROM provider_price")) == 2


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"base_url": None}, "base_url"),
        ({"base_url": "ftp://x"}, "base_url"),
        ({"base_url": "https://host:0/v1"}, "base_url"),
        ({"base_url": "https://host:99999"}, "base_url"),
        ({"base_url": "https://a host/v1"}, "base_url"),
        ({"base_url": "https://host\n.example"}, "base_url"),
        ({"name": "  "}, "name"),
        ({"base_url": "https://key@host/v1"}, "base_url"),
        ({"base_url": "unix:///run/x.sock"}, "base_url"),
        ({"models": []}, "models"),
        ({"models": [ROW, ROW]}, "models"),
        ({"default_model": "other"}, "default_model"),
        ({"key": "two words"}, "key"),
        ({"kind": "openai", "key": None, "base_url": None}, "key"),
    ],
)
async def test_connection_is_refused_with_the_field_that_is_wrong(
    house: House, change: dict[str, Any], field: str
) -> None:
    with pytest.raises(AlcoveError) as caught:
        await house.client.create_provider(_new("http://127.0.0.1:9", **change))
    assert [item["field"] for item in caught.value.details["fields"]] == [field]


@pytest.mark.parametrize("price", [{"input_nanos": -1}, {"output_nanos": -1_000_000_000_000}])
async def test_price_is_refused_when_it_would_give_money(
    house: House, price: dict[str, int]
) -> None:
    new = _new("http://127.0.0.1:9").model_dump()
    new["models"][0] |= price
    client = ServiceClient(house.meter.settings.listen, SECRET, name="meter")
    with pytest.raises(AlcoveError) as caught:
        await client.call("POST", "/providers", body=new)
    await client.close()
    assert caught.value.code == "invalid"
    assert await house.rows("SELECT * FROM provider") == []


@pytest.mark.parametrize(
    ("kind", "given", "kept"),
    [
        ("openai_compatible", "https://host", "https://host/v1"),
        ("openai_compatible", "https://host/api/", "https://host/api"),
        ("openai", None, "https://api.openai.com/v1"),
        ("anthropic", None, "https://api.anthropic.com"),
        ("anthropic_compatible", "https://host/v1", "https://host"),
    ],
)
async def test_address_means_the_same_with_and_without_its_version(
    house: House, kind: str, given: str | None, kept: str
) -> None:
    made = await house.client.create_provider(_new("x", kind=kind, base_url=given))
    assert made.base_url == kept


async def test_known_models_come_with_a_connection_to_their_provider(house: House) -> None:
    await house.client.create_provider(
        wire.NewProvider(
            kind="anthropic", name="Anthropic", key=_KEY, default_model="claude-haiku-4-5"
        )
    )
    models = {m.id: m.alcove for m in await house.client.models()}
    assert models["anthropic/claude-haiku-4-5"].default
    assert models["anthropic/claude-sonnet-4-5"].wire == "anthropic"
    prices = {p.model: p for p in await house.client.prices()}
    assert prices["anthropic/claude-sonnet-4-5"].cache_write_1h_nanos == 6_000_000_000


async def test_model_is_refused_on_a_wire_that_its_provider_does_not_speak(
    house: House, scripted: ScriptedProvider
) -> None:
    await house.connect(scripted)
    answer = await (await house.tenant()).message(model=MODEL)
    assert (answer.status, answer.headers["x-alcove-reason"]) == (400, "wire_mismatch")


async def test_demonstration_model_answers_only_while_no_other_chat_model_is_there(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    async with (
        a_local_server(["smollm2-135m-instruct"]) as chat,
        a_local_server(["multilingual-e5-small"]) as embeddings,
        a_house(
            tmp_path,
            f"sqlite:///{tmp_path}/m.db",
            local_model_url=chat,
            embeddings_url=embeddings,
        ) as house,
    ):
        tenant = await house.tenant()
        models = {m.id: m.alcove for m in await house.client.models()}
        demo = models["local/smollm2-135m-instruct"]
        assert (demo.default, demo.demo, demo.tools) == (True, True, False)
        assert demo.profile == wire.Profile(system_max_tokens=400, temperature=0.2, max_tokens=300)
        assert not models["local-embeddings/multilingual-e5-small"].default
        assert (await tenant.chat(model="default")).status == 200
        embedded = await tenant.post("/v1/embeddings", {"model": "default", "input": "hello"})
        assert embedded.status == 200
        chatted, embedding = await house.entries(tenant, 2)
        assert chatted["charge_nanos"] == 100 * 150 + 10 * 600
        assert (embedding["wire"], embedding["charge_nanos"]) == ("openai_embeddings", 0)
        await house.connect(scripted)
        models = {m.id: m.alcove for m in await house.client.models()}
        assert "local/smollm2-135m-instruct" not in models
        assert models["scripted/scripted-model"].default
        assert (await tenant.chat(model="local/smollm2-135m-instruct")).status == 200


async def test_server_on_loopback_is_found_and_offered_before_the_demonstration_model(
    tmp_path: Path,
) -> None:
    async with (
        a_local_server(["llama3.2", "nomic-embed-text"]) as found,
        a_local_server(["smollm2-135m-instruct"]) as chat,
        a_house(
            tmp_path,
            f"sqlite:///{tmp_path}/m.db",
            local_model_url=chat,
            loopback_providers=("http://127.0.0.1:9", found),
        ) as house,
    ):
        port = found.rpartition(":")[2]
        models = {m.id: m.alcove for m in await house.client.models()}
        assert models[f"loopback-{port}/llama3.2"].default
        assert models[f"loopback-{port}/nomic-embed-text"].kind == "embedding"
        assert "local/smollm2-135m-instruct" not in models
        tenant = await house.tenant()
        assert (await tenant.chat(model="default")).status == 200
        [entry] = await house.entries(tenant)
        assert (entry["charge_nanos"], entry["output_tokens"]) == (0, 10)


async def test_local_model_that_starts_late_is_found_without_a_restart(tmp_path: Path) -> None:
    url = f"unix://{tmp_path}/chat.sock"
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/m.db", local_model_url=url) as house:
        assert await house.client.models() == []
        async with a_local_server(["smollm2-135m-instruct"], url):
            await house.meter.detection.refresh()
            assert [m.id for m in await house.client.models()] == ["local/smollm2-135m-instruct"]
            assert (await (await house.tenant()).chat(model="default")).status == 200
