"""Members that lead past allow-list, hold and price are refused, and all others sent on untouched."""

import json
from typing import Any

import pytest
from openai.types.chat import completion_create_params as chat_params
from openai.types.responses import response_create_params as responses_params

from infra.kit.errors import AlcoveError
from metering_proxy import wire
from metering_proxy.wires import members, paths
from metering_proxy.wires.wire import Ask, Envelope
from tests import scripted as s
from tests.metering_proxy.house import MODEL, ROW, House, Tenant
from tests.scripted import ScriptedProvider

_SAID = [{"role": "user", "content": "hi"}]
_BODIES: dict[str, dict[str, Any]] = {
    "openai_chat": {"model": "m", "messages": _SAID},
    "openai_responses": {"model": "m", "input": "hi"},
    "anthropic_messages": {"model": "m", "max_tokens": 300, "messages": _SAID},
    "gemini_generate": {"contents": [{"parts": [{"text": "hi"}]}]},
}
_ELSEWHERE: list[dict[str, Any]] = [
    {"models": ["openai/o1-pro"]},
    {"route": "fallback"},
    {"provider": {"order": ["dear"]}},
    {"transforms": ["middle-out"]},
    {"plugins": [{"id": "web", "max_results": 10}]},
    {"preset": "dear"},
    {"fallbacks": [{"model": "dear"}]},
    {"search_parameters": {"mode": "on"}},
    {"enable_search": True},
    {"extra_body": {"google": {"cached_content": "x"}}},
    {"n_predict": 9_000},
    {"best_of": 20},
    {"Model": "dear"},
    {"MAX_TOKENS": 100_000},
    {"max_to\u212aens": 100_000},  # the sign for kelvin, which is a k to those who fold
]


def _read(name: str, **more: Any) -> Ask:
    body = json.dumps({**_BODIES[name], **more}).encode()
    return paths.WIRES[name].read(body, Envelope("named"))


@pytest.mark.parametrize("more", _ELSEWHERE, ids=lambda more: next(iter(more)))
async def test_member_that_leads_elsewhere_is_refused_and_named(
    house: House, scripted: ScriptedProvider, more: dict[str, Any]
) -> None:
    await house.connect(scripted, "openrouter")
    other = wire.NewProvider(
        kind="anthropic_compatible", name="anthropic", base_url=scripted.url, models=[ROW]
    )
    await house.client.create_provider(other)
    tenant = await house.tenant()
    name = next(iter(more))
    answer = await tenant.chat(model=f"openrouter/{MODEL}", **more)
    assert (answer.status, answer.headers["x-alcove-reason"]) == (400, "member_not_metered")
    assert json.loads(answer.body)["error"]["param"] == name
    answer = await tenant.message(model=f"anthropic/{MODEL}", **more)
    assert answer.status == 400
    assert name in json.loads(answer.body)["error"]["message"]
    assert not scripted.model_requests


async def test_well_known_extras_pass_untouched(tenant: Tenant, scripted: ScriptedProvider) -> None:
    scripted.then(reply=s.text("ok"))
    extras: dict[str, Any] = {
        "top_k": 3,
        "min_p": 0.1,
        "repetition_penalty": 1.1,
        "chat_template_kwargs": {"enable_thinking": False},
        "thinking": {"type": "disabled"},
        "reasoning": {"effort": "low"},
        "safe_prompt": True,
        "prompt_cache_key": "k",
        "tools": [
            {"type": "function", "function": {"name": "f"}},
            {"type": "custom", "custom": {}},
        ],
        "models": None,  # says nothing
    }
    assert (await tenant.chat(**extras)).status == 200
    sent = scripted.requests[-1].json
    assert {name: sent[name] for name in extras} == extras


async def test_member_of_one_kind_of_provider_passes_there_alone(
    house: House, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text("ok"))
    await house.connect(scripted, "perplexity")
    tenant = await house.tenant()
    narrow: dict[str, Any] = {"search_domain_filter": ["example.org"]}
    assert (await tenant.chat(**narrow)).status == 200
    assert _read("openai_chat", **narrow).strange == ("search_domain_filter",)


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "web_search"},
        {"type": "live_search"},
        {"type": "builtin_function", "function": {"name": "$web_search"}},
        {"type": "function", "function": {"name": "$web_search"}},
        {"Type": "web_search"},
        {"google_search": {}},
        "web_search",
    ],
    ids=str,
)
def test_tool_that_a_provider_runs_is_refused_on_chat(tool: Any) -> None:
    with pytest.raises(AlcoveError, match="tool"):
        _read("openai_chat", tools=[tool])


@pytest.mark.parametrize("name", ["codeExecution", "code_execution", "urlContext", "googleMaps"])
def test_tool_that_google_runs_without_a_price_is_refused(name: str) -> None:
    with pytest.raises(AlcoveError, match=name):
        _read("gemini_generate", tools=[{name: {}}])


@pytest.mark.parametrize("kind", ["web_fetch_20250910", "code_execution_20250825", "mcp_toolset"])
def test_tool_that_anthropic_runs_without_a_bound_is_refused(kind: str) -> None:
    with pytest.raises(AlcoveError, match=kind):
        _read("anthropic_messages", tools=[{"type": kind, "name": "x", "max_uses": 3}])


def test_gemini_chooses_no_model_by_itself() -> None:
    config = {"modelSelectionConfig": {}, "thinkingConfig": {}, "MaxOutputTokens": 9_000}
    asked = _read("gemini_generate", generationConfig=config)
    assert asked.strange == ("modelSelectionConfig", "MaxOutputTokens")
    assert _read("gemini_generate", model="dear").strange == ("model",)


def test_members_of_openai_s_client_are_known_but_for_what_has_no_meter() -> None:
    chat = set(chat_params.CompletionCreateParamsBase.__annotations__) | {"stream"}
    assert chat - members.known()["openai_chat"] <= {"moderation", "web_search_options"}
    responses = set(responses_params.ResponseCreateParamsBase.__annotations__) | {"stream"}
    assert responses - members.known()["openai_responses"] <= {
        "access_programs", "background_options", "context_management", "image", "moderation",
    }  # fmt: skip


def test_other_case_of_what_asks_for_usage_is_refused() -> None:
    options = {"include_usage": True, "Include_Usage": False}
    with pytest.raises(AlcoveError) as caught:
        _read("openai_chat", stream=True, stream_options=options)
    assert caught.value.reason == "member_not_metered"


@pytest.mark.parametrize("given", [[{"image_url": "https://example.org"}], [["x"]], [None], [[{}]]])
def test_embedding_of_what_is_neither_text_nor_tokens_is_refused(given: Any) -> None:
    body = json.dumps({"model": "m", "input": given}).encode()
    with pytest.raises(AlcoveError, match="text"):
        paths.WIRES["openai_embeddings"].read(body)


def test_every_wire_has_a_list() -> None:
    assert {name.removesuffix("_generate").removesuffix("_stream") for name in paths.WIRES} <= set(
        members.known()
    )
