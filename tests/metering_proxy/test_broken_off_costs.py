"""Streams that break off, where public bug reports of other meters have seen them lose or repeat usage.

What the provider has counted by then is exact; what it has not is counted from the words that were passed on.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.metering_proxy.answer_costs import a_priced_meter
from tests.metering_proxy.small_answers import (
    begun,
    chat,
    ended,
    events,
    messages,
    said,
    stop,
    tokens,
    used,
    word,
)
from tests.scripted import ScriptedProvider

pytestmark = pytest.mark.thorough

_LONG = "x" * 400
_CACHED: dict[str, Any] = {"input_tokens": 25, "cache_read_input_tokens": 2000, "output_tokens": 1}
_DELTA = {"type": "response.output_text.delta", "delta": _LONG}
_COMPLETED = {"status": "completed", "usage": {"input_tokens": 20, "output_tokens": 5}}
_DONE = {"type": "response.completed", "response": _COMPLETED}


def _gemini(text: str, candidates: int, **more: Any) -> dict[str, Any]:
    counts = {
        "promptTokenCount": 20,
        "candidatesTokenCount": candidates,
        "cachedContentTokenCount": 8,
    }
    return {
        "candidates": [{"content": {"parts": [{"text": text}]}, **more}],
        "usageMetadata": counts,
    }


# The answer, where it breaks off, and: estimated, input (None: as estimated), read from the cache, output.
_BROKEN = [
    ("new-api#7486, usage and no end", "chat", "openai_compatible",
     chat(word(), stop(), used(**tokens(20, 5, 25))),
     b"data: [DONE]", (0, 20, 0, 5)),
    ("new-api#5235, an end and no usage", "chat", "openai_compatible",
     chat(word(_LONG), stop()), b"data: [DONE]", (1, None, 0, 100)),
    ("new-api#5289, words alone", "chat", "openai_compatible", chat(word(_LONG), word("y" * 80)), b"yyy",
     (1, None, 0, 100)),
    ("langfuse#8808, counted on the way", "chat", "perplexity",
     chat(word(_LONG, usage=tokens(20, 90, 110)), word(_LONG, usage=tokens(20, 180, 200)), stop()),
     b'{"choices": [{"index": 0, "delta": {}', (1, 20, 0, 200)),
    ("langfuse#8808, counted to the end", "chat", "openai_compatible",
     chat(word(_LONG, usage=tokens(20, 90, 110)), stop(usage=tokens(20, 95, 115))), b"data: [DONE]",
     (0, 20, 0, 95)),
    ("otari, a message that began", "messages", "anthropic",
     messages(begun(**_CACHED), said(_LONG), ended(output_tokens=90)),
     b'data: {"type": "message_delta"', (1, 25, 2000, 100)),
    ("otari, a message that was counted", "messages", "anthropic",
     messages(begun(**_CACHED), said(_LONG), ended(output_tokens=90)), b'data: {"type": "message_stop"',
     (0, 25, 2000, 90)),
    ("half of the counting", "messages", "anthropic",
     messages(begun(**_CACHED), said(_LONG), ended(output_tokens=90)),
     b'"usage": {"output_tokens": 90', (1, 25, 2000, 100)),
    ("litellm#36008, a response without its end", "responses", "openai", events(_DELTA, _DONE),
     b'data: {"type": "response.completed"', (1, None, 0, 100)),
    ("half of its end", "responses", "openai", events(_DELTA, _DONE), b'"output_tokens": 5', (1, None, 0, 100)),
    ("Gemini on its way", "gemini", "google", events(_gemini(_LONG, 60), _gemini("", 90, finishReason="STOP")),
     b'data: {"candidates": [{"content": {"parts": [{"text": ""', (1, 12, 8, 100)),
    ("hermes-agent#15253, Gemini ahead of its words", "gemini", "google",
     events(_gemini(_LONG, 130), _gemini("", 140, finishReason="STOP")),
     b'data: {"candidates": [{"content": {"parts": [{"text": ""', (1, 12, 8, 130)),
]  # fmt: skip


async def test_stream_that_breaks_off_costs_what_was_counted_and_else_what_was_passed_on(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    found = {}
    async with a_priced_meter(tmp_path, scripted) as meter:
        for name, wire, kind, body, at, (_, given, *_) in _BROKEN:
            assert body.count(at) >= 1, name
            entry = await meter.entry(wire, kind, body, cut_at=body.index(at))
            told = given if given is None else entry["input_tokens"]
            counts = (entry["cache_read_tokens"], entry["output_tokens"])
            found[name] = (entry["outcome"], entry["estimated"], told, *counts)
        assert (await meter.house.verdict()).whole
    assert found == {name: ("cut", *due) for name, *_, due in _BROKEN}
