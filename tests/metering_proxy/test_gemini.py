"""Gemini: whole answers, events, arrays; the model in the path, the key in a header, thoughts beside the words."""

import json
from typing import Any

import pytest

from infra.kit.errors import AlcoveError
from metering_proxy.pricing import Usage
from metering_proxy.wires import paths
from metering_proxy.wires.arrays import ArraySplitter
from metering_proxy.wires.gemini import Gemini
from metering_proxy.wires.wire import Ask, Envelope
from tests import scripted as s
from tests.metering_proxy.house import MODEL, House, Tenant
from tests.scripted import Reply, ScriptedProvider

pytestmark = pytest.mark.thorough

_ASK: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
_WORDS = ("Grüße, ", "日本語 ", '"}],{ ', "👩🏽‍🚀.")
_PATHS = {
    "whole": f"/v1beta/models/{MODEL}:generateContent",
    "events": f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse",
    "array": f"/v1beta/models/{MODEL}:streamGenerateContent",
}
_MANNERS: dict[str, Reply] = {
    "plain": s.text(*_WORDS),
    "byte by byte": s.text(*_WORDS).byte_by_byte(),
    "crlf byte by byte": s.text(*_WORDS).with_crlf().byte_by_byte(),
    "runes cut": s.text(*_WORDS).cutting_runes(),
    "calls": s.calls("hm", s.call("clock", zone="UTC")),
}


@pytest.fixture
async def google_tenant(house: House, scripted: ScriptedProvider) -> Tenant:
    """A tenant where the scripted provider is connected as Google."""
    await house.connect(scripted, "google")
    return await house.tenant()


def _asked(body: dict[str, Any], *, stream: bool = False, query: str = "") -> Ask:
    envelope = Envelope(model="m", query=query)
    return Gemini("gemini", stream=stream).read(json.dumps(body).encode(), envelope)


@pytest.mark.parametrize("path", _PATHS)
@pytest.mark.parametrize("manner", _MANNERS)
async def test_answer_is_the_same_bytes_and_settled_once(
    house: House, google_tenant: Tenant, scripted: ScriptedProvider, path: str, manner: str
) -> None:
    scripted.then(reply=_MANNERS[manner].using(93, 46, cache_read=1024, reasoning=20))
    answer = await google_tenant.post(_PATHS[path], _ASK)
    assert (answer.status, answer.cut) == (200, False)
    assert answer.body == b"".join(scripted.requests[-1].sent)
    [entry] = await house.entries(google_tenant)
    assert (entry["model"], entry["outcome"], entry["estimated"]) == (
        f"google/{MODEL}",
        "complete",
        0,
    )
    found = entry["input_tokens"], entry["cache_read_tokens"], entry["output_tokens"]
    assert found == (93, 1024, 46)


@pytest.mark.parametrize("path", [*_PATHS.values(), "/v1/chat/completions"])
async def test_tier_that_a_header_says_was_served_is_the_one_paid(
    house: House, google_tenant: Tenant, scripted: ScriptedProvider, path: str
) -> None:
    reply = s.text("hm").using(93, 46).with_headers(x_gemini_service_tier="Priority")
    scripted.then(reply=reply)
    ask = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    assert (await google_tenant.post(path, ask if "chat" in path else _ASK)).status == 200
    [entry] = await house.entries(google_tenant)
    assert json.loads(entry["parts"])["tier"] == "priority"
    # It has no price of its own here, which is told.
    assert house.meter.metrics.registry.get_sample_value("meter_unpriced_total") == 1


@pytest.mark.parametrize("path", ["events", "array"])
async def test_stream_that_breaks_is_charged_by_what_was_seen(
    house: House, google_tenant: Tenant, scripted: ScriptedProvider, path: str
) -> None:
    scripted.then(reply=s.text("x" * 400, "y" * 400, "z").using(20, 900).dropped_after(1200))
    answer = await google_tenant.post(_PATHS[path], _ASK)
    assert answer.cut
    [entry] = await house.entries(google_tenant)
    assert (entry["outcome"], entry["estimated"]) == ("cut", 1)
    assert (entry["input_tokens"], entry["output_tokens"] >= 100) == (20, True)


async def test_key_in_the_query_opens_nothing_and_goes_nowhere(
    google_tenant: Tenant, scripted: ScriptedProvider
) -> None:
    path = f"{_PATHS['events']}&key={google_tenant.key}"
    async with google_tenant.session.post(f"http://localhost{path}", json=_ASK) as refused:
        assert refused.status == 401
        assert (await refused.json())["error"]["status"] == "UNAUTHENTICATED"
    scripted.then(reply=s.text("x"))
    shown = {"x-goog-api-key": google_tenant.key}
    async with google_tenant.session.post(
        f"http://localhost{path}", json=_ASK, headers=shown
    ) as ok:
        assert ok.status == 200
        await ok.read()
    sent = scripted.requests[-1]
    assert sent.path == _PATHS["events"]
    assert google_tenant.key not in str(sent.raw_headers)
    assert sent.headers["x-goog-api-key"] == "sk-provider-key-1234"
    assert "authorization" not in sent.headers


async def test_limit_is_lowered_inside_of_the_generation_config(
    house: House, google_tenant: Tenant, scripted: ScriptedProvider
) -> None:
    bodies = [
        _ASK,
        {**_ASK, "generationConfig": {"temperature": 0.5}},
        {**_ASK, "generation_config": {"max_output_tokens": 900, "temperature": 0.5}},
    ]
    for body in bodies:
        scripted.then(reply=s.text("x").using(10, 10))
        poor = await house.tenant("free", charge_month_nanos=1_200_000)
        answer = await poor.post(_PATHS["whole"], body)
        clamped = int(answer.headers["x-alcove-clamped-to"])
        sent = scripted.requests[-1].json
        config = sent.get("generationConfig") or sent["generation_config"]
        assert config.get("maxOutputTokens", config.get("max_output_tokens")) == clamped < 900
        assert ("temperature" in config) == ("temperature" in str(body))


@pytest.mark.parametrize(
    "wrong",
    [
        {"contents": []},
        {**_ASK, "generationConfig": {"maxOutputTokens": "9"}},
        {**_ASK, "generationConfig": {"maxOutputTokens": -1}},
        {**_ASK, "generationConfig": {"maxOutputTokens": 1, "max_output_tokens": 90_000}},
        {**_ASK, "generationConfig": {}, "generation_config": {"maxOutputTokens": 90_000}},
        {**_ASK, "generationConfig": [1]},
        {**_ASK, "generationConfig": {"candidateCount": 0}},
        {**_ASK, "tools": [{"codeExecution": {}}]},
        {**_ASK, "tools": [{"urlContext": {}}]},
    ],
    ids=str,
)
def test_request_is_refused_when_its_cost_has_no_bound(wrong: dict[str, Any]) -> None:
    with pytest.raises(AlcoveError) as caught:
        _asked(wrong)
    assert caught.value.code == "invalid"


def test_what_is_not_in_the_body_is_bounded_by_the_context_window() -> None:
    hidden: list[dict[str, Any]] = [
        {**_ASK, "cachedContent": "cachedContents/1"},
        {"contents": [{"parts": [{"fileData": {"fileUri": "https://x"}}]}]},
        {"contents": [{"parts": [{"inline_data": {"mime_type": "audio/wav", "data": "AAAA"}}]}]},
        {**_ASK, "tools": [{"googleSearch": {}}]},
    ]
    for body in hidden:
        assert _asked(body).survey.bound(context=10**6, image_tokens=258) == 10**6
    picture = {"inlineData": {"mimeType": "image/png", "data": "A" * 9000}}
    seen = _asked({"contents": [{"parts": [picture]}]})
    assert 258 < seen.survey.bound(context=10**6, image_tokens=258) < 1000


def _whole(**usage: Any) -> Usage | None:
    reader = Gemini("gemini", stream=False).reader()
    candidate = {"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}
    reader.whole(json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode())
    assert reader.found.finished
    return reader.found.usage


def test_thoughts_are_beside_the_candidates_and_the_cache_inside_the_prompt() -> None:
    found = _whole(
        promptTokenCount=1117,
        cachedContentTokenCount=1024,
        candidatesTokenCount=26,
        thoughtsTokenCount=20,
        totalTokenCount=1163,
    )
    assert found == Usage(input=93, cache_read=1024, output=46, reasoning=20)


def test_modalities_and_tools_fall_into_their_buckets() -> None:
    found = _whole(
        promptTokenCount=100,
        cachedContentTokenCount=40,
        toolUsePromptTokenCount=7,
        promptTokensDetails=[{"modality": "AUDIO", "tokenCount": 30}],
        cacheTokensDetails=[{"modality": "AUDIO", "tokenCount": 10}],
        candidatesTokenCount=50,
        candidatesTokensDetails=[
            {"modality": "IMAGE", "tokenCount": 20},
            {"modality": "AUDIO", "tokenCount": 5},
        ],
    )
    assert found == Usage(
        input=47,
        cache_read=30,
        audio_input=20,
        output=25,
        audio_output=5,
        image_output=20,
        audio_cache_read=10,
    )


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
def test_array_is_cut_into_its_elements_however_its_bytes_come(size: int) -> None:
    elements = [{"t": 'a "quoted\\" } ] text'}, {"n": [{"x": {}}, []]}, {"last": "日本\\\\"}]
    raw = (
        b"\r\n["
        + b",\r\n".join(json.dumps(e, ensure_ascii=False).encode() for e in elements)
        + b"]\n"
    )
    splitter = ArraySplitter()
    pairs = [p for at in range(0, len(raw), size) for p in splitter.feed(raw[at : at + size])]
    pairs.append(splitter.last())
    assert b"".join(part for part, _ in pairs) == raw
    assert [json.loads(data) for _, data in pairs if data] == elements


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v1beta/models/gemini-2.5-pro:generateContent", "gemini-2.5-pro"),
        ("/v1/models/gemini-2.5-pro:streamGenerateContent", "gemini-2.5-pro"),
        ("/v1beta/models/google/gemini-2.5-pro:generateContent", "google/gemini-2.5-pro"),
        ("/v1beta/models/google%2Fgemini-2.5-pro:generateContent", "google/gemini-2.5-pro"),
        ("/v1beta/models/llama3:8b:generateContent", "llama3:8b"),
    ],
)
def test_model_is_named_by_the_path(path: str, model: str) -> None:
    found = paths.find(path)
    assert found is not None
    assert found[1] == model


@pytest.mark.parametrize("method", ["countTokens", "embedContent", "batchEmbedContents", "x", ""])
def test_other_methods_do_not_exist(method: str) -> None:
    assert paths.find(f"/v1beta/models/gemini-2.5-pro:{method}") is None
