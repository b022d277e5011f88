"""OpenAI's Responses: every ending is settled, what is hidden is bounded, what has no meter is not there."""

import json
from typing import Any

import pytest

from infra.kit.errors import AlcoveError
from metering_proxy.pricing import Usage
from metering_proxy.wires.openai_responses import OpenAiResponses
from metering_proxy.wires.wire import Found
from tests import scripted as s
from tests.metering_proxy.house import House, Tenant
from tests.scripted import ScriptedProvider

_ASK = {"model": "default", "input": "hi", "max_output_tokens": 100}
_USAGE = {
    "input_tokens": 1117,
    "input_tokens_details": {"cached_tokens": 1024},
    "output_tokens": 46,
    "output_tokens_details": {"reasoning_tokens": 46},
    "total_tokens": 1163,
}


def _read(*events: dict[str, Any]) -> Found:
    reader = OpenAiResponses().reader()
    for event in events:
        assert not reader.event(json.dumps(event).encode())
    return reader.found


def _end(ending: str, usage: Any = _USAGE, **more: Any) -> dict[str, Any]:
    response = {"model": "gpt-5", "service_tier": "flex", "usage": usage, **more}
    return {"type": f"response.{ending}", "response": response}


@pytest.mark.parametrize("ending", ["completed", "incomplete", "failed"])
def test_usage_is_taken_from_every_terminal_event(ending: str) -> None:
    found = _read({"type": "response.created", "response": {"usage": None}}, _end(ending))
    expected = Usage(input=93, cache_read=1024, output=46, reasoning=46, tier="flex")
    assert found.usage == expected
    assert (found.model, found.finished) == ("gpt-5", True)
    assert found.failed == (ending == "failed")


def test_failure_without_usage_is_not_finished() -> None:
    found = _read({"type": "response.output_text.delta", "delta": "abcde"}, _end("failed", None))
    assert (found.usage, found.finished, found.failed, found.output_estimate) == (
        None,
        False,
        True,
        2,
    )


def test_searches_are_those_told_else_those_seen() -> None:
    call = {"type": "response.output_item.done", "item": {"type": "web_search_call"}}
    seen, told = _read(call, call, _end("completed")), {"web_search": {"num_requests": 5}}
    assert seen.usage is not None
    assert seen.usage.web_searches == 2
    counted = _read(call, _end("completed", tool_usage=told))
    assert counted.usage is not None
    assert counted.usage.web_searches == 5


@pytest.mark.parametrize(
    "hidden",
    [
        {"previous_response_id": "resp_1"},
        {"conversation": "conv_1"},
        {"prompt": {"id": "pmpt_1"}},
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]}]},
        {"input": [{"type": "item_reference", "id": "msg_1"}]},
        {"tools": [{"type": "web_search"}], "max_tool_calls": 3},
    ],
    ids=lambda hidden: next(iter(hidden)),
)
def test_what_is_not_in_the_body_is_bounded_by_the_context_window(hidden: dict[str, Any]) -> None:
    ask = OpenAiResponses().read(json.dumps({**_ASK, **hidden}).encode())
    assert ask.survey.bound(context=400_000, image_tokens=10_000) == 400_000
    reach = ask.reach(400_000, automatic_cache=False)
    assert reach.input_tokens == 400_000 * (1 + ask.searches)


@pytest.mark.parametrize(
    "wrong",
    [
        {"background": True},
        {"background": 1},
        {"tools": [{"type": "web_search"}]},
        {"tools": [{"type": "file_search"}], "max_tool_calls": 1},
        {"tools": [{"type": "code_interpreter"}], "max_tool_calls": 1},
        {"tools": [{"type": "mcp", "server_url": "https://x"}], "max_tool_calls": 1},
        {"tools": [{"type": "image_generation"}], "max_tool_calls": 1},
        {"max_output_tokens": True},
        {"max_output_tokens": -5},
        {"input": 5},
        {"stream": "yes"},
    ],
    ids=str,
)
def test_request_is_refused_when_its_cost_has_no_bound(wrong: dict[str, Any]) -> None:
    with pytest.raises(AlcoveError) as caught:
        OpenAiResponses().read(json.dumps({**_ASK, **wrong}).encode())
    assert caught.value.code == "invalid"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("stop", [None, "length"])
async def test_response_is_the_same_bytes_and_settled_once(
    house: House, tenant: Tenant, scripted: ScriptedProvider, stream: bool, stop: Any
) -> None:
    reply = s.calls("Grüße ", "日本語", s.call("clock", zone="UTC"))
    scripted.then(reply=reply.using(7, 3, cache_read=5).stopping(stop))
    answer = await tenant.post("/v1/responses", {**_ASK, "stream": stream})
    assert (answer.status, answer.cut) == (200, False)
    assert answer.body == b"".join(scripted.requests[-1].sent)
    [entry] = await house.entries(tenant)
    assert (entry["wire"], entry["input_tokens"], entry["output_tokens"]) == (
        "openai_responses",
        7,
        3,
    )
    assert (entry["charge_nanos"], entry["estimated"]) == (12 * 1_000 + 3 * 2_000, 0)


async def test_error_event_is_passed_on_and_charged_by_estimate(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text("some words ", s.StreamError(), "never"))
    answer = await tenant.post("/v1/responses", {**_ASK, "stream": True})
    assert b"Overloaded" in answer.body
    [entry] = await house.entries(tenant)
    assert (entry["outcome"], entry["estimated"]) == ("error", 1)
    assert entry["charge_nanos"] > 0


@pytest.mark.parametrize("path", ["/v1/responses/resp_1", "/v1/responses/resp_1/input_items"])
async def test_stored_response_cannot_be_read_past_the_meter(
    house: House, tenant: Tenant, scripted: ScriptedProvider, path: str
) -> None:
    shown = {"authorization": f"Bearer {tenant.key}"}
    for _ in range(2):
        async with tenant.session.get(f"http://localhost{path}", headers=shown) as answer:
            assert (answer.status, answer.headers["x-alcove-reason"]) == (404, "no_such_path")
    assert scripted.requests == []
    assert await house.rows("SELECT * FROM entry") == []


async def test_limit_is_written_under_its_own_name_when_it_is_lowered(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text("x").using(10, 10))
    poor = await house.tenant("free", charge_month_nanos=1_000_000)
    answer = await poor.post("/v1/responses", {**_ASK, "max_output_tokens": 900})
    clamped = int(answer.headers["x-alcove-clamped-to"])
    assert 256 <= clamped < 900
    assert scripted.requests[-1].json["max_output_tokens"] == clamped
