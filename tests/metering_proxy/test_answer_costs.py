"""Messages, responses, pictures, embeddings and Gemini's answers as further public bug reports have seen them.

Each is charged to the nano through a whole meter. A row's name is the report's.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from metering_proxy.pricing import Usage
from tests.metering_proxy.answer_costs import Row, a_priced_meter
from tests.metering_proxy.small_answers import begun, ended, events, halted, messages, said
from tests.scripted import ScriptedProvider

pytestmark = pytest.mark.thorough

_ANY = "anthropic_compatible"
_USED = {"input_tokens": 20, "output_tokens": 5}
_PLAIN = Usage(input=20, output=5)


def _message(usage: Any, **more: Any) -> bytes:
    content = [{"type": "text", "text": "hello"}]
    return json.dumps({"type": "message", "content": content, "usage": usage, **more}).encode()


def _iteration(kind: str, **usage: int) -> dict[str, Any]:
    return {"type": kind, **usage}


_MESSAGES: list[Row] = [
    ("claude-code#60641", "anthropic", _message({**_USED, "inference_geo": "us", "service_tier": "standard"}),
     _PLAIN.in_tier("us")),
    ("claude-code#60641 in a stream", "anthropic",
     messages(begun(input_tokens=20, output_tokens=1, inference_geo="us", service_tier="standard"), said(),
              ended(output_tokens=5)), _PLAIN.in_tier("us")),
    ("litellm#21904 everywhere", "anthropic", _message({**_USED, "inference_geo": "global"}), _PLAIN),
    ("litellm#21904 nowhere", "anthropic", _message({**_USED, "inference_geo": "not_available"}), _PLAIN),
    ("plain tier in capitals", "anthropic", _message({**_USED, "service_tier": "STANDARD"}), _PLAIN),
    ("AnthropicSwiftSDK#7", "anthropic",
     messages(begun(input_tokens=20, output_tokens=1), said(),
              {"type": "message_delta", "delta": {"stop_reason": "end_turn",
              "usage": {"output_tokens": 5}}}), _PLAIN),
    ("usage at the very end", _ANY,
     events(begun(input_tokens=20, output_tokens=1), said(), halted(), {"type": "message_stop",
     "usage": _USED}), _PLAIN),
    ("an answer without its type", _ANY,
     json.dumps({"content": [{"type": "text", "text": "hello"}], "usage": _USED}).encode(), _PLAIN),
    ("bifrost#5885", _ANY,
     messages({"type": "message_start", "message": {"model": "m"}}, said(),
              ended(input_tokens=20, cache_read_input_tokens=0, output_tokens=5)), _PLAIN),
    ("headroom#1132", _ANY,
     messages(begun(input_tokens=0, output_tokens=0), said(),
              ended(input_tokens=1, cache_read_input_tokens=61711, output_tokens=5)),
     Usage(input=1, cache_read=61711, output=5)),
    ("sglang#33419", _ANY,
     messages(begun(input_tokens=8, output_tokens=0), said(), ended(output_tokens=16)), Usage(input=8, output=16)),
    ("gptel#1331", "anthropic",
     messages(begun(input_tokens=9325, cache_creation_input_tokens=0, cache_read_input_tokens=0, output_tokens=2,
                    cache_creation={"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0}), said(),
              ended(output_tokens=76)), Usage(input=9325, output=76)),
    ("bifrost#3451", "anthropic",
     messages(begun(input_tokens=6, cache_creation_input_tokens=159_217, output_tokens=1), said(),
              ended(input_tokens=6, cache_creation_input_tokens=159_217, output_tokens=2745)),
     Usage(input=6, cache_write_5m=159_217, output=2745)),
    ("ai-gateway#2241", "anthropic",
     messages(begun(input_tokens=317, cache_creation_input_tokens=4425, cache_read_input_tokens=0,
     output_tokens=1),
              said(), ended(input_tokens=317, cache_creation_input_tokens=4425, cache_read_input_tokens=0,
                            output_tokens=21)), Usage(input=317, cache_write_5m=4425, output=21)),
    ("litellm#29432", "anthropic",
     messages(begun(input_tokens=3, cache_creation_input_tokens=688, output_tokens=1,
                    cache_creation={"ephemeral_5m_input_tokens": 288, "ephemeral_1h_input_tokens": 400}), said(),
              ended(cache_creation_input_tokens=688, output_tokens=9)),
     Usage(input=3, cache_write_5m=288, cache_write_1h=400, output=9)),
    ("pydantic-ai#5065", "anthropic",
     _message({"input_tokens": 23_000, "output_tokens": 1000, "iterations": [
         _iteration("compaction", input_tokens=180_000, output_tokens=3500),
         _iteration("message", input_tokens=23_000, output_tokens=1000)]}),
     Usage(input=203_000, output=4500)),
    ("litellm#27065", "anthropic",
     messages(begun(input_tokens=100, output_tokens=1), said(),
              ended(input_tokens=100, cache_read_input_tokens=50, output_tokens=10, iterations=[
                  _iteration("compaction", input_tokens=10, cache_read_input_tokens=900, output_tokens=30),
                  _iteration("message", input_tokens=100, cache_read_input_tokens=50, output_tokens=10)])),
     Usage(input=110, cache_read=950, output=40)),
    ("agentgateway, thinking inside", "anthropic",
     _message({**_USED, "output_tokens_details": {"thinking_tokens": 4}}), _PLAIN),
    ("tapes#127, null at the end", "anthropic",
     messages(begun(**_USED, server_tool_use=None), said(),
              ended(output_tokens=7, input_tokens=None, cache_read_input_tokens=None)), Usage(input=20, output=7)),
    ("done behind the end", _ANY, messages(begun(**_USED), said(), ended(output_tokens=7)) + b"data: [DONE]\n\n",
     Usage(input=20, output=7)),
    ("higress#4146", _ANY, messages(begun(**_USED), said("x" * 70_000), ended(output_tokens=17_500)),
     Usage(input=20, output=17_500)),
    ("events without a blank line", _ANY,
     messages(begun(**_USED), said(), ended(output_tokens=7)).replace(b"\n\n", b"\n"), Usage(input=20, output=7)),
]  # fmt: skip


def _response(usage: Any, **more: Any) -> bytes:
    return json.dumps({"status": "completed", "usage": usage, **more}).encode()


def _completed(usage: Any, *before: dict[str, Any], **more: Any) -> bytes:
    response = {"status": "completed", "usage": usage, **more}
    return events(*before, {"type": "response.completed", "response": response})


_DELTA = {"type": "response.output_text.delta", "delta": "hello"}
_SEARCH = {
    "type": "web_search_call",
    "status": "completed",
    "action": {"type": "search", "query": "x"},
}
_RESPONSES: list[Row] = [
    ("openresponses#18", "openai_compatible",
     _response({**_USED, "input_tokens": 1000, "input_tokens_details": {"cache_creation_tokens": 900}}),
     Usage(input=100, cache_write_5m=900, output=5)),
    ("opik#6971", "openai",
     _completed({**_USED, "input_tokens": 1000, "input_tokens_details": {"cached_tokens": 900}}, _DELTA),
     Usage(input=100, cache_read=900, output=5)),
    ("codex2api#253", "openai_compatible",
     _completed({"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
                 "input_tokens_details": {"cached_tokens": 3}}, _DELTA), Usage(input=7, cache_read=3, output=5)),
    ("zeros beside another's names", "openai_compatible",
     _response({"input_tokens": 0, "output_tokens": 0, "prompt_tokens": 20, "completion_tokens": 5}), _PLAIN),
    ("higress#4424", "openai_compatible",
     _completed({"input_tokens": 10751, "output_tokens": 13, "total_tokens": 10764,
                 "input_tokens_details": {"cached_tokens": 0, "input_tokens_per_turn": [],
                                          "cached_tokens_per_turn": []},
                 "output_tokens_details": {"reasoning_tokens": 0, "tool_output_tokens": 0,
                                           "output_tokens_per_turn": []}}, _DELTA),
     Usage(input=10751, output=13)),
    ("litellm#30817", "xai",
     _response({**_USED, "server_side_tool_usage_details": {"web_search_calls": 2, "x_search_calls": 0}},
               output=[_SEARCH]), _PLAIN.with_searches(2)),
    ("searches told by the whole alone", "openai", _completed(_USED, _DELTA, output=[_SEARCH, _SEARCH]),
     _PLAIN.with_searches(2)),
    ("searches told twice", "openai",
     _completed(_USED, _DELTA, {"type": "response.output_item.done", "item": _SEARCH}, output=[_SEARCH]),
     _PLAIN.with_searches(1)),
    ("plain tier in capitals", "openai", _response(_USED, service_tier="Standard"), _PLAIN),
    ("tier as it began", "openai",
     _completed(_USED, {"type": "response.created", "response": {"service_tier": "auto", "usage": None}}, _DELTA,
                service_tier="flex"), _PLAIN.in_tier("flex")),
    ("OmniRoute#6906", "openai_compatible", _completed(None, _DELTA), None),
    ("completed twice", "openai_compatible", _completed(_USED, _DELTA) + _completed(_USED), _PLAIN),
    ("done behind the end", "openai_compatible", _completed(_USED, _DELTA) + b"data: [DONE]\n\n", _PLAIN),
    ("mindroom#2134", "openai",
     _completed({"input_tokens": 2600, "output_tokens": 300, "total_tokens": 2900,
                 "input_tokens_details": {"cached_tokens": 2000, "cache_write_tokens": 400}}, _DELTA),
     Usage(input=200, cache_read=2000, cache_write_5m=400, output=300)),
]  # fmt: skip


def _chunk(
    usage: dict[str, Any], text: str = "hi", end: str | None = "STOP", **more: Any
) -> dict[str, Any]:
    candidate = {"content": {"parts": [{"text": text}]}, **({"finishReason": end} if end else {})}
    return {"candidates": [candidate], "usageMetadata": usage, **more}


def _counts(prompt: int, candidates: int, **more: Any) -> dict[str, Any]:
    return {"promptTokenCount": prompt, "candidatesTokenCount": candidates, **more}


def _of(**tokens: int) -> list[dict[str, Any]]:
    return [{"modality": name, "tokenCount": count} for name, count in tokens.items()]


_GEMINI: list[Row] = [
    ("litellm#21909", "google", events(_chunk(_counts(20, 5, trafficType="ON_DEMAND_PRIORITY"))),
     _PLAIN.in_tier("priority")),
    ("litellm#37647", "google", events(_chunk(_counts(20, 5, trafficType="ON_DEMAND_FLEX"))),
     _PLAIN.in_tier("flex")),
    ("litellm#21909 flex", "google", events(_chunk(_counts(20, 5, trafficType="FLEX"))), _PLAIN.in_tier("flex")),
    ("litellm#21909 plain", "google", events(_chunk(_counts(20, 5, trafficType="ON_DEMAND"))), _PLAIN),
    ("bought in advance", "google", events(_chunk(_counts(20, 5, trafficType="PROVISIONED_THROUGHPUT"))), _PLAIN),
    ("tier beside its traffic", "google",
     events(_chunk(_counts(20, 5, trafficType="ON_DEMAND", serviceTier="FLEX"))), _PLAIN.in_tier("flex")),
    ("agentscope-java#3033", "google",
     events(_chunk(_counts(500, 120, toolUsePromptTokenCount=300, thoughtsTokenCount=10, totalTokenCount=930))),
     Usage(input=800, output=130)),
    ("agent-maestro#190", "google",
     events(_chunk(_counts(219, 4, thoughtsTokenCount=167, totalTokenCount=390))), Usage(input=219, output=171)),
    ("langchainjs#9731", "google",
     events(_chunk(_counts(1200, 1, cachedContentTokenCount=1024), end=None),
            _chunk(_counts(1200, 9, cachedContentTokenCount=1024))), Usage(input=176, cache_read=1024, output=9)),
    ("litellm#10667", "google",
     events(_chunk(_counts(19693, 7, totalTokenCount=20309, thoughtsTokenCount=609)),),
     Usage(input=19693, output=616)),
    ("picture and words", "google",
     events(_chunk(_counts(10, 1300, totalTokenCount=1310, candidatesTokensDetails=_of(TEXT=10, IMAGE=1290)))),
     Usage(input=10, output=10, image_output=1290)),
    ("speech", "google",
     events(_chunk(_counts(10, 500, totalTokenCount=510, candidatesTokensDetails=_of(AUDIO=500)))),
     Usage(input=10, audio_output=500)),
    ("a film with sound", "google",
     events(_chunk(_counts(1000, 5, totalTokenCount=1005,
                           promptTokensDetails=_of(TEXT=10, VIDEO=740, AUDIO=250)))),
     Usage(input=750, audio_input=250, output=5)),
    ("usage behind the end", "google",
     events({"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}]},
            {"usageMetadata": _counts(20, 5)}), _PLAIN),
    ("events without a blank line", "google",
     events(_chunk(_counts(20, 1), end=None), _chunk(_counts(20, 5))).replace(b"\n\n", b"\n"), _PLAIN),
]  # fmt: skip


def _pictures(usage: dict[str, Any]) -> bytes:
    return json.dumps({"data": [{"b64_json": "x"}], "usage": usage}).encode()


def _tokens(given: int, made: int, **more: Any) -> dict[str, Any]:
    return {"input_tokens": given, "output_tokens": made, "total_tokens": given + made, **more}


_IMAGES: list[Row] = [
    ("litellm#21902", "openai",
     _pictures(_tokens(357, 6543, input_tokens_details={"text_tokens": 34, "image_tokens": 323},
                       output_tokens_details={"text_tokens": 335, "image_tokens": 6208})),
     Usage(input=34, image_input=323, output=335, image_output=6208)),
    ("litellm#19515", "openai",
     _pictures(_tokens(169, 4599, input_tokens_details={"text_tokens": 169, "image_tokens": 0},
                       output_tokens_details={"text_tokens": 439, "image_tokens": 4160})),
     Usage(input=169, output=439, image_output=4160)),
    ("litellm#18541", "openai",
     _pictures({**_tokens(23, 1056), "prompt_tokens": 0, "completion_tokens": 0,
                "input_tokens_details": {"image_tokens": 0, "text_tokens": 23}, "output_tokens_details": None}),
     Usage(input=23, image_output=1056)),
    ("all of it is pictures", "openai",
     _pictures(_tokens(23, 1056, output_tokens_details={"image_tokens": 1056, "text_tokens": 0})),
     Usage(input=23, image_output=1056)),
    ("cached pictures", "openai",
     _pictures(_tokens(400, 1056, input_tokens_details={
         "text_tokens": 100, "image_tokens": 300, "cached_tokens": 200,
         "cached_tokens_details": {"text_tokens": 50, "image_tokens": 150}})),
     Usage(input=50, cache_read=200, image_input=150, image_output=1056)),
    ("streamed", "openai",
     events({"type": "image_generation.partial_image", "b64_json": "x"},
            {"type": "image_generation.completed", "b64_json": "x",
             "usage": _tokens(10, 1156, output_tokens_details={"image_tokens": 1056, "text_tokens": 100})}),
     Usage(input=10, output=100, image_output=1056)),
]  # fmt: skip


def _vectors(usage: Any, **more: Any) -> bytes:
    return json.dumps({"data": [{"embedding": [0.1]}], "usage": usage, **more}).encode()


_EMBEDDINGS: list[Row] = [
    ("new names", "openai_compatible", _vectors({"input_tokens": 8, "total_tokens": 8}), Usage(input=8)),
    ("packed", "openai", json.dumps({"data": [{"embedding": "AAAA"}], "usage": {"prompt_tokens": 8}}).encode(),
     Usage(input=8)),
    ("zero beside a total", "openai_compatible", _vectors({"prompt_tokens": 0, "total_tokens": 8}),
     Usage(input=8)),
    ("only output", "openai_compatible", _vectors({"completion_tokens": 8}), None),
    ("no usage", "openai_compatible", _vectors(None), None),
    ("long", "openai", json.dumps({"data": [{"embedding": [0.123456789] * 400_000}],
                                   "usage": {"prompt_tokens": 8, "total_tokens": 8}}).encode(), Usage(input=8)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("wire", "rows"),
    [
        ("messages", _MESSAGES),
        ("responses", _RESPONSES),
        ("gemini", _GEMINI),
        ("images", _IMAGES),
        ("embeddings", _EMBEDDINGS),
    ],
)
async def test_answer_costs_what_it_used(
    tmp_path: Path, scripted: ScriptedProvider, wire: str, rows: list[Row]
) -> None:
    async with a_priced_meter(tmp_path, scripted) as meter:
        assert await meter.wrong(wire, rows) == {}
        assert (await meter.house.verdict()).whole
