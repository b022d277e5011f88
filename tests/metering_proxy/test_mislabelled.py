"""Answers that are not what they call themselves, or not what was asked for: paid by what they are."""

import json
from typing import Any

import pytest

from tests import scripted as s
from tests.metering_proxy.house import MODEL, House, Tenant
from tests.scripted import ScriptedProvider

pytestmark = pytest.mark.thorough

_USAGE = {"prompt_tokens": 20, "completion_tokens": 9}
_WHOLE = json.dumps({"choices": [{"message": {"content": "hello"}}], "usage": _USAGE}).encode()
_STREAM = b"".join(
    [
        b'data: {"choices":[{"delta":{"content":"hello"}}]}\n\n',
        b"data: " + json.dumps({"choices": [], "usage": _USAGE}).encode() + b"\n\n",
        b"data: [DONE]\n\n",
    ]
)
_EXACTLY = 20 * 1_000 + 9 * 2_000
_LINES = [b"data: once upon a time\n\n", b'data: "there was"\n\n', b"data: a fox\n\n"]
_BY = {
    "openai_chat": ("/v1/chat/completions", "openai_compatible"),
    "anthropic_messages": ("/v1/messages", "anthropic_compatible"),
    "openai_responses": ("/v1/responses", "openai"),
    "gemini_stream": (f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse", "google"),
}


def _request(wire: str, *, stream: bool) -> dict[str, Any]:
    said = [{"role": "user", "content": "hi"}]
    if wire == "gemini_stream":
        return {"contents": [{"parts": [{"text": "hi"}]}]}
    named = {"model": MODEL, "stream": stream}
    return named | (
        {"input": "hi"} if "responses" in wire else {"messages": said, "max_tokens": 50}
    )


@pytest.mark.parametrize("wire", _BY)
async def test_stream_of_what_is_no_json_is_estimated_from_what_was_passed_on(
    house: House, scripted: ScriptedProvider, wire: str
) -> None:
    path, kind = _BY[wire]
    await house.connect(scripted, kind)
    tenant = await house.tenant()
    body = b"".join([b": hello\n\n", b"data: : keepalive\n\n", *_LINES, b"data: [DONE]\n\n"])
    scripted.then(reply=s.recorded(body, "text/event-stream").byte_by_byte())
    answer = await tenant.post(path, _request(wire, stream=True))
    assert answer.body == body
    [entry] = await house.entries(tenant)
    spoken = len(b'once upon a time"there was"a fox')
    assert (entry["outcome"], entry["estimated"]) == ("complete", 1)
    assert entry["output_tokens"] == -(-spoken // 4)
    assert entry["charge_nanos"] == entry["input_tokens"] * 1_000 + entry["output_tokens"] * 2_000


async def test_lines_that_are_no_json_between_words_are_no_words(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    words = b'data: {"choices":[{"delta":{"content":"hell"}}]}\n\n'
    scripted.then(reply=s.recorded(b"".join([*_LINES, words, *_LINES]), "text/event-stream"))
    await tenant.chat(stream=True)
    [entry] = await house.entries(tenant)
    assert (entry["estimated"], entry["output_tokens"]) == (1, 1)


async def test_stream_that_only_kept_the_line_alive_and_broke_costs_its_caller_nothing(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    alive = b"data: : keepalive\n\n" * 20
    scripted.then(reply=s.recorded(alive, "text/event-stream").dropped_after(100))
    assert (await tenant.chat(stream=True)).cut
    [entry] = await house.entries(tenant)
    assert (entry["outcome"], entry["charge_nanos"]) == ("cut", 0)
    assert entry["cost_nanos"] > 0


@pytest.mark.parametrize(
    "content_type", ["application/json", "text/plain", "", "text/event-stream"]
)
async def test_stream_that_nobody_asked_for_is_read_and_paid_as_one(
    house: House, tenant: Tenant, scripted: ScriptedProvider, content_type: str
) -> None:
    scripted.then(reply=s.recorded(_STREAM, content_type).byte_by_byte())
    answer = await tenant.chat()
    assert (answer.status, answer.body) == (200, _STREAM)
    [entry] = await house.entries(tenant)
    assert (entry["outcome"], entry["charge_nanos"], entry["estimated"]) == (
        "complete",
        _EXACTLY,
        0,
    )


async def test_stream_that_nobody_asked_for_without_usage_is_estimated_from_its_words(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    words = b'data: {"choices":[{"delta":{"content":"' + b"x" * 400 + b'"}}]}\n\n'
    scripted.then(reply=s.recorded(words + b"data: [DONE]\n\n", "application/json"))
    await tenant.chat()
    [entry] = await house.entries(tenant)
    assert (entry["outcome"], entry["estimated"], entry["output_tokens"]) == ("complete", 1, 100)
    assert entry["charge_nanos"] == entry["input_tokens"] * 1_000 + 100 * 2_000


@pytest.mark.parametrize("before", [b"", b"\n \r\n"])
async def test_whole_answer_that_calls_itself_a_stream_is_read_and_paid(
    house: House, tenant: Tenant, scripted: ScriptedProvider, before: bytes
) -> None:
    scripted.then(reply=s.recorded(before + _WHOLE, "text/event-stream").byte_by_byte())
    answer = await tenant.chat()
    assert answer.body == before + _WHOLE
    [entry] = await house.entries(tenant)
    assert (entry["outcome"], entry["charge_nanos"], entry["estimated"]) == (
        "complete",
        _EXACTLY,
        0,
    )
