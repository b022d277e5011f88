"""JSON that is not quite JSON, which clients read over: it hides neither usage nor text from the meter."""

import json

import pytest

from metering_proxy.pricing import Usage
from metering_proxy.wires import answers
from tests import scripted as s
from tests.metering_proxy import small_answers
from tests.metering_proxy.house import House, Tenant
from tests.metering_proxy.small_answers import (
    begun,
    chat,
    ended,
    events,
    messages,
    said,
    stop,
    used,
    whole,
    word,
)
from tests.scripted import ScriptedProvider

_USED = {"prompt_tokens": 20, "completion_tokens": 5}
# What stands in the place of a word in an answer.
_ODD = {
    "half of a character": rb"\ud83d",
    "its other half": rb"\ude00 there",
    "broken UTF-8": b"\xf0\x9f",
}


@pytest.mark.parametrize("odd", _ODD.values(), ids=_ODD)
def test_usage_beside_half_a_character_is_read(odd: bytes) -> None:
    gemini = {"candidates": [{"content": {"parts": [{"text": "WORD"}]}, "finishReason": "STOP"}]}
    counts = {"promptTokenCount": 20, "candidatesTokenCount": 5}
    end = ended(output_tokens=5, note="WORD")
    for wire, kind, body in (
        ("openai_chat", "openai", whole(_USED, text="WORD")),
        (
            "openai_chat",
            "openai",
            chat(word("WORD", usage=None), stop(note="WORD"), used(**_USED, note="WORD")),
        ),
        (
            "anthropic_messages",
            "anthropic",
            messages(begun(input_tokens=20, output_tokens=1), said("WORD"), end),
        ),
        ("gemini_stream", "google", events({**gemini, "usageMetadata": counts})),
        ("gemini_generate", "google", json.dumps({**gemini, "usageMetadata": counts}).encode()),
    ):
        small_answers.check(wire, kind, body.replace(b"WORD", odd), Usage(input=20, output=5))


def test_numbers_that_json_does_not_know_and_marks_before_it_are_read_over() -> None:
    body = whole(_USED, logprobs=float("nan"), least=float("-inf"))
    assert b"NaN" in body
    small_answers.check("openai_chat", "openai", body, Usage(input=20, output=5))
    marked = b"\xef\xbb\xbf" + whole(_USED)
    small_answers.check("openai_chat", "openai", marked, Usage(input=20, output=5))


@pytest.mark.parametrize(
    "junk", [b"", b"{", b"[DONE]", b"\xff", b"[" * 100_000, b"'x'", b"{} {}", b"9" * 5_000]
)
def test_what_is_no_json_at_all_is_nothing(junk: bytes) -> None:
    assert answers.read(junk) is None


async def test_answer_that_ends_in_half_a_character_is_paid_as_told(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    body = whole(_USED, text="WORD", model="WORD").replace(b"WORD", rb"\ud83d")
    scripted.then(reply=s.recorded(body, "application/json"))
    answer = await tenant.chat()
    assert answer.body == body
    [entry] = await house.entries(tenant)
    assert (entry["outcome"], entry["estimated"]) == ("complete", 0)
    assert entry["charge_nanos"] == 20 * 1_000 + 5 * 2_000
