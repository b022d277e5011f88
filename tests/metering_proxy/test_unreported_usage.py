"""Answers that do not tell what they used, that fail in their own way, or whose provider states the cost.

Through a whole meter, as further public bug reports have seen them. A row's name is the report's, or its oddity.
"""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from metering_proxy.pricing import Usage
from tests.metering_proxy.answer_costs import a_priced_meter, nanos
from tests.metering_proxy.small_answers import (
    begun,
    chat,
    events,
    halted,
    messages,
    said,
    stop,
    whole,
    word,
)
from tests.scripted import ScriptedProvider

pytestmark = pytest.mark.thorough

_ANY = "openai_compatible"
_LIKE_ANTHROPIC = "anthropic_compatible"
_WORDS = "x" * 400


def _delta(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def _block(**block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": 0, "content_block": block}


def _completed(*items: dict[str, Any]) -> dict[str, Any]:
    response = {"status": "completed", "usage": None, "output": list(items)}
    return {"type": "response.completed", "response": response}


_SPOKEN = {"type": "message", "content": [{"type": "output_text", "text": _WORDS}]}
# Answers of four hundred bytes of words, wherever they stand.
_UNTOLD = [
    ("calls as they once were", "chat", _ANY, chat(_delta(function_call={"name": "x" * 100,
     "arguments": "x" * 300}))),
    ("pydantic-ai, a list of parts", "chat", "mistral", chat(_delta(content=[{"type": "text", "text": _WORDS}]))),
    (
        "thoughts in a list of parts",
        "chat",
        "mistral",
        chat(_delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": _WORDS}]}])),
    ),
    ("speech with its words", "chat", _ANY, chat(_delta(audio={"data": "AAAA", "transcript": _WORDS}))),
    ("several answers", "chat", _ANY, chat(word("x" * 200), word("x" * 200), stop())),
    ("whole, a list of parts", "chat", _ANY, whole(None, text=[{"type": "text", "text": _WORDS}])),
    ("words in the block's beginning", "messages", _LIKE_ANTHROPIC,
     messages(begun(), _block(type="text", text=_WORDS), halted())),
    ("a call in the block's beginning", "messages", _LIKE_ANTHROPIC,
     messages(begun(), _block(type="tool_use", input={"a": "x" * 392}), halted())),
    ("an empty beginning", "messages", _LIKE_ANTHROPIC,
     messages(begun(), _block(type="tool_use", input={}), said(_WORDS), halted())),
    ("OmniRoute#6906, all at the end", "responses", _ANY, events(_completed(_SPOKEN))),
    ("OmniRoute#6906, in pieces and at the end", "responses", _ANY,
     events({"type": "response.output_text.delta", "delta": _WORDS}, _completed(_SPOKEN))),
]  # fmt: skip


async def test_words_are_counted_wherever_they_stand_when_nobody_tells_their_tokens(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    found = {}
    async with a_priced_meter(tmp_path, scripted) as meter:
        for name, wire, kind, body in _UNTOLD:
            entry = await meter.entry(wire, kind, body)
            found[name] = (entry["outcome"], entry["estimated"], entry["output_tokens"])
    assert found == {name: ("complete", 1, 100) for name, *_ in _UNTOLD}


_BROKEN = {"message": "upstream went away", "type": "stream_error"}
_FAILED = [
    ("Antigravity#3371", "messages", _LIKE_ANTHROPIC, events(begun(input_tokens=20), {"error": _BROKEN})),
    ("Antigravity#3371 after words", "messages", _LIKE_ANTHROPIC,
     events(begun(input_tokens=20), *[said()] * 5, {"error": _BROKEN})),
    ("cloud#4326", "messages", "anthropic",
     events(begun(input_tokens=20), said(), {"type": "error", "error": {"type": "timeout", "message": "x"}})),
    ("SHTUCodeProxy#4", "chat", _ANY, chat(word(), {"object": "error", "message": "context", "code": 400})),
    ("groq, in its own member", "chat", "groq", chat(word(), {"choices": [],
     "x_groq": {"error": "over capacity"}})),
    ("an error that is but a text", "chat", _ANY, chat(word(), {"error": "out of memory",
     "error_type": "generation"})),
    ("litellm#39708", "responses", "openai",
     events({"type": "response.failed", "response": {"status": "failed",
     "error": {"code": "insufficient_quota"}}})),
    ("an error without a type", "responses", _ANY,
     events({"type": "response.output_text.delta", "delta": "hi"}, *[{"type": "x", "delta": "hi"}] * 5,
            {"error": _BROKEN})),
]  # fmt: skip


async def test_error_behind_a_good_status_is_a_failure_however_it_is_said(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    found = {}
    async with a_priced_meter(tmp_path, scripted) as meter:
        for name, wire, kind, body in _FAILED:
            found[name] = (await meter.entry(wire, kind, body))["outcome"]
    assert found == {name: "error" for name, *_ in _FAILED}


_TOKENS = {"prompt_tokens": 9171, "completion_tokens": 113, "total_tokens": 9284}
_BY_PRICE = nanos(Usage(input=9171, output=113))
_UPSTREAM = {"upstream_inference_cost": 0.0360795}
_FREE = {**_TOKENS, "cost": 0, "is_byok": False}
_STATED = [
    ("forgecode#1641", "chat", "openrouter",
     whole({**_TOKENS, "cost": 0, "is_byok": True, "cost_details": _UPSTREAM}), 36_079_500),
    ("cline#9053", "chat", "openrouter",
     whole({**_TOKENS, "cost": 0.0360795, "is_byok": False, "cost_details": _UPSTREAM}), 36_079_500),
    ("ironclaw#463", "chat", "openrouter", whole(_FREE), 0),
    ("ironclaw#463 in a stream", "chat", "openrouter", chat(word(), stop(usage={**_FREE, "cost": 0.0})), 0),
    ("mini-swe-agent#591", "chat", "openrouter", whole({**_TOKENS, "cost": 0}), _BY_PRICE),
    ("free, paid by nobody knows whom", "chat", "openrouter", whole({**_TOKENS, "cost": 0,
     "is_byok": True}), _BY_PRICE),
    ("free in words", "chat", "openrouter", whole({**_FREE, "cost": "0"}), _BY_PRICE),
    ("cost before its end", "chat", "openrouter",
     chat(word(usage={**_TOKENS, "cost": 0.001, "is_byok": False}), stop(usage=_TOKENS)), 1_000_000),
    ("rig#1419", "embeddings", "openrouter",
     json.dumps({"data": [{}], "usage": {"prompt_tokens": 9171, "cost": 0.00018342}}).encode(), 183_420),
    ("promptfoo#10809", "chat", "perplexity", whole({**_TOKENS, "cost": {"total_cost": 0.0123}}), 12_300_000),
    ("litellm#39441", "responses", "xai",
     json.dumps({"status": "completed", "usage": {"input_tokens": 9171, "output_tokens": 113,
                                                  "cost_in_usd_ticks": 1}}).encode(), _BY_PRICE),
]  # fmt: skip


async def test_cost_that_is_stated_is_what_is_paid_also_where_it_is_nothing(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    found: dict[str, int | Fraction] = {}
    async with a_priced_meter(tmp_path, scripted) as meter:
        for name, wire, kind, body, _ in _STATED:
            entry = await meter.entry(wire, kind, body)
            found[name] = entry["cost_nanos"] if not entry["estimated"] else -1
        assert (await meter.house.verdict()).whole
    assert found == {name: due for name, *_, due in _STATED}


async def test_cost_that_is_stated_differently_on_responses_is_a_doubt(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    usage = {"input_tokens": 20, "output_tokens": 5}
    right = round(nanos(Usage(input=20, output=5))) * 10
    async with a_priced_meter(tmp_path, scripted) as meter:
        for ticks, doubt in ((right, None), (right + 10, "stated_cost")):
            told = {**usage, "cost_in_usd_ticks": ticks}
            body = json.dumps({"status": "completed", "usage": told}).encode()
            entry = await meter.entry("responses", "xai", body)
            assert json.loads(entry["parts"]).get("doubt") == doubt
