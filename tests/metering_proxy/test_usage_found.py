"""Usage is found in answers as each provider reports it, in buckets that do not overlap."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from metering_proxy.pricing import Usage
from metering_proxy.wires.anthropic_messages import AnthropicMessages
from metering_proxy.wires.events import Splitter
from metering_proxy.wires.openai_chat import OpenAiChat
from metering_proxy.wires.wire import Found, Wire
from tests.metering_proxy.small_answers import ended

_PROMPT_DETAILS = {"cached_tokens": 1024, "audio_tokens": 0}


def _stream(wire: Wire, *events: Mapping[str, Any] | str) -> Found:
    reader = wire.reader()
    for event in events:
        reader.event(event.encode() if isinstance(event, str) else json.dumps(event).encode())
    return reader.found


def _chunk(usage: Any = None, **more: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [], "usage": usage, **more}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {
                "prompt_tokens": 1117,
                "completion_tokens": 46,
                "total_tokens": 1163,
                "prompt_tokens_details": _PROMPT_DETAILS,
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            Usage(input=93, cache_read=1024, output=46, reasoning=20),
        ),
        (  # DeepSeek, under both names
            {
                "prompt_tokens": 1000,
                "completion_tokens": 10,
                "prompt_cache_hit_tokens": 600,
                "prompt_cache_miss_tokens": 400,
                "prompt_tokens_details": {"cached_tokens": 600},
            },
            Usage(input=400, cache_read=600, output=10),
        ),
        (  # xAI: reasoning beside completion
            {
                "prompt_tokens": 32,
                "completion_tokens": 9,
                "total_tokens": 135,
                "completion_tokens_details": {"reasoning_tokens": 94},
            },
            Usage(input=32, output=103, reasoning=94),
        ),
        (  # the reverse: inside
            {
                "prompt_tokens": 500,
                "completion_tokens": 500,
                "total_tokens": 1000,
                "completion_tokens_details": {"reasoning_tokens": 200},
            },
            Usage(input=500, output=500, reasoning=200),
        ),
        (  # Moonshot: cached on top
            {"prompt_tokens": 50, "completion_tokens": 5, "cached_tokens": 20},
            Usage(input=30, cache_read=20, output=5),
        ),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 30},
            },
            Usage(input=60, cache_read=10, cache_write_5m=30, output=5),
        ),
        (  # more in the cache than the input stands beside it; nonsense never makes a negative bucket
            {
                "prompt_tokens": 5,
                "completion_tokens": 0,
                "prompt_tokens_details": {"cached_tokens": 900, "audio_tokens": -3},
            },
            Usage(input=5, cache_read=900),
        ),
        (  # numbers as some relays write them
            {
                "prompt_tokens": 1117.0,
                "completion_tokens": "46",
                "prompt_tokens_details": {"cached_tokens": "1024"},
            },
            Usage(input=93, cache_read=1024, output=46),
        ),
    ],
    ids=["openai", "deepseek", "xai", "subset", "moonshot", "cache-write", "nonsense", "floats"],
)
def test_openai_usage_falls_into_its_buckets(usage: dict[str, Any], expected: Usage) -> None:
    found = _stream(OpenAiChat(), _chunk(usage), "[DONE]")
    assert found.usage == expected
    assert found.finished


@pytest.mark.parametrize(
    "chunk",
    [
        {
            "choices": [
                {
                    "delta": {},
                    "finish_reason": "stop",
                    "usage": {"prompt_tokens": 4, "completion_tokens": 2},
                }
            ]
        },
        {
            "choices": [{"delta": {}}],
            "x_groq": {"usage": {"prompt_tokens": 4, "completion_tokens": 2}},
        },
        {"choices": [{"delta": {}}], "usage": {"prompt_tokens": 4, "completion_tokens": 2}},
        {"choices": None, "usage": {"prompt_tokens": 4, "completion_tokens": 2}},
        {"usage": {"prompt_tokens": 4, "completion_tokens": 2}},
    ],
    ids=["choice", "groq", "content chunk", "null choices", "no choices"],
)
def test_openai_usage_is_found_wherever_a_provider_puts_it(chunk: dict[str, Any]) -> None:
    assert _stream(OpenAiChat(), chunk, "[DONE]").usage == Usage(input=4, output=2)


def test_only_a_chunk_of_nothing_but_usage_is_ours() -> None:
    reader = OpenAiChat().reader()
    filtered = {"choices": [], "prompt_filter_results": [{}]}
    assert not reader.event(json.dumps(filtered).encode())
    assert not reader.event(b'{"choices":[{"delta":{}}],"usage":{"prompt_tokens":1}}')
    assert not reader.event(b": keepalive")
    assert reader.event(b'{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}')


def test_repeated_usage_is_cumulative_not_summed() -> None:
    chunks = [_chunk({"prompt_tokens": 9, "completion_tokens": n}) for n in range(1, 21)]
    assert _stream(OpenAiChat(), *chunks, "[DONE]").usage == Usage(input=9, output=20)


def _start(**usage: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"model": "claude-sonnet-4-5", "usage": usage}}


def test_anthropic_usage_is_cumulative_and_writes_are_split_by_lifetime() -> None:
    start = _start(
        input_tokens=25,
        cache_creation_input_tokens=1000,
        cache_read_input_tokens=2000,
        cache_creation={"ephemeral_5m_input_tokens": 600, "ephemeral_1h_input_tokens": 400},
        output_tokens=1,
        service_tier="standard",
    )
    found = _stream(AnthropicMessages(), start, ended(output_tokens=15), {"type": "message_stop"})
    assert found.usage == Usage(25, 2000, 600, 400, 15, tier="standard")
    assert (found.model, found.finished) == ("claude-sonnet-4-5", True)


def test_anthropic_writes_beyond_the_split_are_added() -> None:
    start = _start(
        input_tokens=25,
        cache_read_input_tokens=2000,
        cache_creation={"ephemeral_5m_input_tokens": 600, "ephemeral_1h_input_tokens": 400},
    )
    found = _stream(
        AnthropicMessages(), start, ended(cache_creation_input_tokens=5000, output_tokens=15)
    )
    assert found.usage == Usage(25, 2000, 4600, 400, 15)


def test_anthropic_zero_does_not_replace_a_number() -> None:
    late = ended(input_tokens=0, output_tokens=5, server_tool_use={"web_search_requests": 2})
    found = _stream(AnthropicMessages(), _start(input_tokens=9, output_tokens=1), late)
    assert found.usage == Usage(input=9, output=5, web_searches=2)


def test_anthropic_input_given_only_at_the_end_counts() -> None:
    late = ended(input_tokens=4522, cache_creation_input_tokens=4511, output_tokens=5)
    found = _stream(AnthropicMessages(), _start(input_tokens=0, output_tokens=0), late)
    assert found.usage is not None
    assert found.usage.total == 9038


def test_answer_that_is_no_json_is_read_as_nothing() -> None:
    for wire in (OpenAiChat(), AnthropicMessages()):
        reader = wire.reader()
        for junk in (b"", b"null", b"[1]", b'"x"', b"{", b"\xff"):
            assert not reader.event(junk)
            reader.whole(junk)
        assert reader.found.usage is None


_GOLDEN = (
    '\ufeffdata: {"a":"é日👩🏽‍🚀"}\n\n: comment\n\ndata:x\r\ndata: y\r\n\r\nevent: e\rdata: z\r\r\n'
    "data: [DONE]\n\ndata: unfinished"
).encode()
_EVENTS = [
    b'{"a":"\xc3\xa9' + "日👩🏽‍🚀".encode() + b'"}',
    None,
    b"x\ny",
    b"z",
    b"[DONE]",
    b"unfinished",
]


@pytest.mark.parametrize("size", range(1, 12))
def test_splitter_keeps_every_byte_and_finds_the_same_events_however_they_are_cut(
    size: int,
) -> None:
    splitter = Splitter()
    pairs = [
        pair
        for at in range(0, len(_GOLDEN), size)
        for pair in splitter.feed(_GOLDEN[at : at + size])
    ]
    pairs.append(splitter.last())
    assert b"".join(raw for raw, _ in pairs) == _GOLDEN
    assert [data for raw, data in pairs if raw != b"\n"] == _EVENTS


def test_splitter_passes_on_unread_what_is_longer_than_it_keeps() -> None:
    splitter = Splitter()
    long = b"data: " + b"x" * (17 * 1024 * 1024)
    out = b"".join(raw for raw, _ in splitter.feed(long))
    out += b"".join(raw for raw, data in splitter.feed(b"\n\ndata: y\n\n") if data is None)
    assert splitter.gave_up
    assert out == long + b"\n\ndata: y\n\n"
