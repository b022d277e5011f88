"""Providers are rows of data: where each is reached, how it wants its key, which names of a limit it heeds."""

from pathlib import Path
from typing import Any

import pytest

from infra.kit.errors import AlcoveError
from metering_proxy import wire
from metering_proxy.providers.kinds import kinds, load
from metering_proxy.wires import paths
from tests import scripted as s
from tests.metering_proxy.goldens import ASKED
from tests.metering_proxy.house import MODEL, ROW, House
from tests.scripted import Reply, ScriptedProvider

pytestmark = pytest.mark.thorough

_MADE = [name for name, kind in kinds().items() if not kind.built_in]
_CALLS: dict[str, tuple[str, Any]] = {
    "openai_chat": ASKED["chat"],
    "openai_responses": ASKED["responses"],
    "anthropic_messages": ASKED["messages"],
    "gemini_stream": ASKED["gemini_events"],
}


def test_every_provider_that_is_promised_has_a_row() -> None:
    promised = (
        "anthropic openai google xai mistral deepseek openrouter moonshot minimax glm perplexity huggingface groq "
        "ollama lm_studio local local-embeddings openai_compatible anthropic_compatible"
    )
    assert kinds().keys() == set(promised.split())


def test_every_row_speaks_wires_that_exist() -> None:
    for kind in kinds().values():
        assert kind.paths
        assert kind.paths.keys() <= paths.WIRES.keys()
        assert all(path.startswith("/") for path in (*kind.paths.values(), kind.models_path))
    assert {name for kind in kinds().values() for name in kind.paths} == paths.WIRES.keys()


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ('name = "x"\ntitle = "X"\nmodels_path = "/m"\npaths = {}\nauthh = "bearer"', "authh"),
        ('name = "x"\ntitle = "X"\nmodels_path = "/m"\npaths = {}\nauth = "basic"', "basic"),
        ('name = "x"\ntitle = "X"\nmodels_path = "/m"\npaths = {}\ndialect = { a = 1 }', "'a'"),
        ('name = "x"\ntitle = "X"', "paths"),
    ],
)
def test_row_is_refused_with_what_is_wrong(tmp_path: Path, row: str, problem: str) -> None:
    file = tmp_path / "providers.toml"
    file.write_text(f"[[provider]]\n{row}\n")
    with pytest.raises(ValueError, match=problem):
        load(file)


@pytest.mark.parametrize(
    ("name", "wire_name", "url"),
    [
        ("openai", "openai_responses", "https://api.openai.com/v1/responses"),
        ("anthropic", "anthropic_messages", "https://api.anthropic.com/v1/messages"),
        ("google", "openai_chat", "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions"),
        ("deepseek", "anthropic_messages", "https://api.deepseek.com/anthropic/v1/messages"),
        ("openrouter", "openai_chat", "https://openrouter.ai/api/v1/chat/completions"),
        ("glm", "openai_chat", "https://api.z.ai/api/paas/v4/chat/completions"),
        ("perplexity", "openai_chat", "https://api.perplexity.ai/chat/completions"),
        ("huggingface", "openai_chat", "https://router.huggingface.co/v1/chat/completions"),
        ("groq", "openai_chat", "https://api.groq.com/openai/v1/chat/completions"),
        ("ollama", "openai_chat", "http://127.0.0.1:11434/v1/chat/completions"),
    ],
)  # fmt: skip
def test_address_is_the_documented_one(name: str, wire_name: str, url: str) -> None:
    kind = kinds()[name]
    assert kind.base_url is not None
    assert kind.base_url + kind.path(wire_name, "m") == url


@pytest.mark.parametrize("name", _MADE)
async def test_call_of_every_kind_goes_where_its_row_says_with_its_key(
    house: House, scripted: ScriptedProvider, name: str
) -> None:
    kind = kinds()[name]
    await house.connect(scripted, name)
    tenant = await house.tenant("plus")
    for spoken in kind.paths.keys() & _CALLS.keys():
        scripted.then(reply=s.text("x").using(10, 1))
        assert (await tenant.post(*_CALLS[spoken])).status == 200
        sent = scripted.requests[-1]
        assert sent.path.endswith(
            kind.path(spoken, MODEL) + ("?alt=sse" if "gemini" in spoken else "")
        )
        header, value = kind.key_header(spoken, "sk-provider-key-1234")
        assert sent.headers[header] == value
        assert tenant.key not in f"{sent.raw_headers}{sent.path}{sent.body!r}"
        assert ("anthropic-version" in sent.headers) == spoken.startswith("anthropic")


@pytest.mark.parametrize("name", [n for n in _MADE if "openai_chat" in kinds()[n].paths])
async def test_usage_is_asked_for_only_where_the_question_is_understood(
    house: House, scripted: ScriptedProvider, name: str
) -> None:
    await house.connect(scripted, name)
    tenant = await house.tenant("plus")
    scripted.then(reply=s.text("some words").using(10, 4).with_usage_in_every_chunk())
    answer = await tenant.chat(stream=True)
    asked = scripted.requests[-1].include_usage
    assert asked == kinds()[name].include_usage
    assert (answer.body == b"".join(scripted.requests[-1].sent)) == (not asked)
    [entry] = await house.entries(tenant)
    assert (entry["input_tokens"], entry["output_tokens"], entry["estimated"]) == (10, 4, 0)


@pytest.mark.parametrize("given", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("name", ["openai", "mistral", "openrouter", "openai_compatible"])
async def test_limit_stands_where_the_provider_looks_for_it(
    house: House, scripted: ScriptedProvider, name: str, given: str
) -> None:
    await house.connect(scripted, name)
    tenant = await house.tenant("plus")
    scripted.then(reply=s.text("x").using(10, 1))
    await tenant.chat(**{given: 300})
    heeded, sent = kinds()[name].limit_fields, scripted.requests[-1].json
    assert any(sent.get(field) == 300 for field in heeded)
    assert (set(sent) & {"max_tokens", "max_completion_tokens"} == {given}) == (given in heeded)


async def test_cost_that_a_provider_states_is_charged_or_compared_as_its_row_says(
    house: House, scripted: ScriptedProvider
) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "cost": 0.0005, "cost_in_usd_ticks": 1}
    body = {"choices": [{"message": {"content": "x"}}], "usage": usage}
    nanos = {}
    for name in ("openrouter", "xai", "openai_compatible"):
        made = await house.connect(scripted, name)
        tenant = await house.tenant()
        scripted.then(reply=Reply(body=body))
        await tenant.chat(model=f"{made}/{MODEL}")
        [entry] = await house.entries(tenant)
        nanos[name] = (entry["cost_nanos"], "stated_cost" in entry["parts"])
    assert nanos == {
        "openrouter": (500_000, False),
        "xai": (12_000, True),
        "openai_compatible": (12_000, False),
    }


@pytest.mark.parametrize("kind", ["local", "local-embeddings", "nobody", "OpenAI"])
async def test_connection_of_no_kind_is_refused(house: House, kind: str) -> None:
    new = wire.NewProvider(
        kind=kind, name="x", base_url="http://127.0.0.1:9", key="k", models=[ROW]
    )
    with pytest.raises(AlcoveError) as caught:
        await house.client.create_provider(new)
    assert [item["field"] for item in caught.value.details["fields"]] == ["kind"]
