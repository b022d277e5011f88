"""Searches that Google makes for a model: which count, and what they cost by the model's own price."""

import json
from pathlib import Path
from typing import Any

import pytest

from metering_proxy.providers import price_file
from metering_proxy.wires.gemini import Gemini
from tests import scripted as s
from tests.metering_proxy.house import House, a_house
from tests.scripted import Reply, ScriptedProvider

pytestmark = pytest.mark.thorough


def _grounded(*queries: str, chunks: bool = True) -> dict[str, Any]:
    found = [{"web": {"uri": "https://example.org", "title": "W"}}] if chunks else []
    return {"webSearchQueries": list(queries), "groundingChunks": found}


def _answers(*metadata: dict[str, Any] | None) -> bytes:
    """A whole answer with a candidate for each."""
    candidates = [
        {"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}
        | ({} if each is None else {"groundingMetadata": each})
        for each in metadata
    ]
    usage = {"promptTokenCount": 40, "candidatesTokenCount": 20, "totalTokenCount": 60}
    return json.dumps({"candidates": candidates, "usageMetadata": usage}).encode()


@pytest.mark.parametrize(
    ("metadata", "searches"),
    [
        ([None], 0),
        ([{}], 0),
        ([_grounded("one")], 1),
        ([_grounded("one", "two", "one", "", " ")], 2),
        ([_grounded("one", "two"), _grounded("two", "three")], 3),
        ([_grounded("", "")], 1),  # it found something, so it searched
        ([_grounded(chunks=False)], 0),
        ([{"webSearchQueries": "one", "groundingChunks": None}], 0),
        ([{"webSearchQueries": [None, 5, ["x"]], "groundingChunks": []}], 0),
    ],
)
def test_searches_that_differ_and_are_not_empty_are_counted(
    metadata: list[dict[str, Any] | None], searches: int
) -> None:
    whole = Gemini("gemini", stream=False).reader()
    whole.whole(_answers(*metadata))
    assert whole.found.usage is not None
    assert whole.found.usage.web_searches == searches


def test_searches_of_a_stream_are_counted_wherever_they_stand() -> None:
    reader = Gemini("gemini", stream=True).reader()
    for queries in (("one",), ("one", "two"), ()):
        candidate = {
            "content": {"parts": [{"text": "x"}]},
            "groundingMetadata": _grounded(*queries),
        }
        usage = {"promptTokenCount": 40, "candidatesTokenCount": 20}
        reader.event(json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode())
    late = {"candidates": [{"finishReason": "STOP", "groundingMetadata": _grounded("three")}]}
    reader.event(json.dumps(late).encode())
    assert reader.found.usage is not None
    assert (reader.found.usage.web_searches, reader.found.finished) == (3, True)


# $35 a thousand prompts, or $14 a thousand searches, beside 40 tokens in and 20 out.
@pytest.mark.parametrize(
    ("model", "queries", "nanos", "overrun"),
    [
        ("gemini-2.5-pro", 3, 35_000_000 + 40 * 1_250 + 20 * 10_000, 0),
        ("gemini-2.5-pro", 0, 40 * 1_250 + 20 * 10_000, 0),
        ("gemini-3.5-flash", 3, 3 * 14_000_000 + 40 * 1_500 + 20 * 9_000, 0),
        ("gemini-3.5-flash", 20, 20 * 14_000_000 + 40 * 1_500 + 20 * 9_000, 0),
        ("gemini-3.1-pro-preview", 1, 14_000_000 + 40 * 2_000 + 20 * 12_000, 0),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_google_searches_are_paid_as_the_models_price_counts_them(
    house: House,
    scripted: ScriptedProvider,
    model: str,
    queries: int,
    nanos: int,
    overrun: int,
    stream: bool,
) -> None:
    await house.connect(scripted, "google")
    tenant = await house.tenant("free", charge_month_nanos=None)
    told = {"promptTokenCount": 40, "candidatesTokenCount": 20, "totalTokenCount": 60}
    candidate: dict[str, Any] = {"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}
    if queries:
        made = [f"query {n}" for n in range(queries)]
        candidate["groundingMetadata"] = {"webSearchQueries": [*made, *made, ""]}
    answer = {"candidates": [candidate], "usageMetadata": told}
    event = b"data: " + json.dumps(answer).encode() + b"\r\n\r\n"
    scripted.then(reply=s.recorded(event, "text/event-stream") if stream else Reply(body=answer))
    path = f"/v1beta/models/{model}:" + (
        "streamGenerateContent?alt=sse" if stream else "generateContent"
    )
    body = {
        "contents": [{"parts": [{"text": "who won"}]}],
        "tools": [{"google_search": {}}],
        "generationConfig": {"maxOutputTokens": 300},
    }
    assert (await tenant.post(path, body)).status == 200
    [entry] = await house.entries(tenant)
    assert (entry["cost_nanos"], entry["overrun"], entry["estimated"]) == (nanos, overrun, 0)
    assert entry["cost_nanos"] <= await house.held_at_first()
    assert json.loads(entry["parts"]).get("web_searches", 0) == queries


async def test_searches_without_a_bound_need_one_in_the_price(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    """What Google may search without an end is refused where the price does not say what is held for it."""
    prices = tmp_path / "prices.toml"
    reviewed = price_file.FILE.read_text()
    prices.write_text(reviewed.replace("web_search_most = 20\n", ""))
    database = f"sqlite:///{tmp_path}/m.db"
    async with a_house(tmp_path, database, prices_file=prices) as house:
        await house.connect(scripted, "google")
        tenant = await house.tenant("free", charge_month_nanos=None)
        body = {"contents": [{"parts": [{"text": "hi"}]}], "tools": [{"googleSearch": {}}]}
        for model in ("gemini-3.5-flash", "gemini-3.1-pro-preview"):
            refused = await tenant.post(f"/v1beta/models/{model}:generateContent", body)
            assert refused.headers["x-alcove-reason"] == "model_not_priced"
        assert scripted.requests == []
