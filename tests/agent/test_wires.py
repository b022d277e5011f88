"""Streams of servers that keep to no rule: each chunking gives the same words and the same calls."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from agent.errors import ContextTooLong, ModelError, pause_s, refused
from agent.providers import anthropic_messages, openai_chat
from agent.providers.wire import Assembler, Reply
from infra.kit.sse import Event


def assembled(assembler: Assembler, chunks: Sequence[Any]) -> tuple[str, Reply]:
    """What was streamed, and the reply."""
    shown = ""
    for chunk in chunks:
        data = chunk if isinstance(chunk, str) else json.dumps(chunk)
        shown += "".join(assembler.feed(Event(data)))
    return shown, assembler.reply()


def calls_of(reply: Reply) -> list[tuple[str, str, dict[str, Any]]]:
    """Id, name and parsed arguments of each call."""
    return [(c.id, c.name, c.parsed()[0]) for c in reply.calls]


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """One OpenAI chunk."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def fragment(
    arguments: Any, *, index: int | None = 0, id: str | None = None, name: str | None = None
) -> dict[str, Any]:
    """One entry of `tool_calls`."""
    entry: dict[str, Any] = {"function": {"arguments": arguments}}
    if index is not None:
        entry["index"] = index
    if id is not None:
        entry["id"] = id
    if name is not None:
        entry["function"]["name"] = name
    return entry


A, B = ("a", {"x": 1}), ("b", {"y": 2})
TWO_CALLS = {
    "by index": [
        delta(tool_calls=[fragment("", id="1", name="a"), fragment("", index=1, id="2", name="b")]),
        delta(tool_calls=[fragment('{"y"', index=1), fragment('{"x": ')]),
        delta(tool_calls=[fragment("1}"), fragment(": 2}", index=1)]),
    ],
    "one index, two ids": [
        delta(tool_calls=[fragment('{"x": 1}', id="1", name="a")]),
        delta(tool_calls=[fragment('{"y": ', id="2", name="b")]),
        delta(tool_calls=[fragment("2}")]),
    ],
    "one index, no ids": [
        delta(tool_calls=[fragment('{"x": 1}', name="a")]),
        delta(tool_calls=[fragment('{"y": 2}', name="b")]),
    ],
    "one chunk, no index": [
        delta(
            tool_calls=[
                fragment('{"x": 1}', index=None, id="1", name="a"),
                fragment('{"y": 2}', index=None, id="2", name="b"),
            ]
        ),
    ],
    "one chunk, no index, no id": [
        delta(
            tool_calls=[
                fragment('{"x": 1}', index=None, name="a"),
                fragment('{"y": 2}', index=None, name="b"),
            ]
        ),
    ],
    "no index, in pieces": [
        delta(tool_calls=[fragment('{"x"', index=None, id="1", name="a")]),
        delta(tool_calls=[fragment(": 1}", index=None, id="1")]),
        delta(tool_calls=[fragment('{"y": 2}', index=None, id="2", name="b")]),
    ],
    "arguments as an object": [
        delta(
            tool_calls=[
                fragment({"x": 1}, id="1", name="a"),
                fragment({"y": 2}, index=1, id="2", name="b"),
            ]
        ),
    ],
    "a late id": [
        delta(tool_calls=[fragment('{"x": 1}', name="a"), fragment('{"y": 2}', index=1, name="b")]),
        delta(tool_calls=[fragment("", id="1"), fragment("", index=1, id="2")]),
    ],
}


@pytest.mark.parametrize("chunking", TWO_CALLS)
def test_openai_calls_stay_apart_however_they_are_chunked(chunking: str) -> None:
    _, reply = assembled(
        openai_chat.Stream(), [*TWO_CALLS[chunking], delta("tool_calls"), "[DONE]"]
    )
    assert [(name, arguments) for _, name, arguments in calls_of(reply)] == [A, B]
    assert reply.stop == "calls"


def test_openai_words_are_whole_when_a_pair_of_surrogates_is_cut() -> None:
    chunks = [
        '{"choices": [{"delta": {"content": "a \\ud83d"}}]}',
        '{"choices": [{"delta": {"content": "\\ude00 b"}}]}',
        '{"choices": [{"delta": {"content": " \\ud83d"}, "finish_reason": "stop"}]}',
    ]
    shown, reply = assembled(openai_chat.Stream(), chunks)
    assert shown == "a 😀 b "
    assert reply.text == "a 😀 b \ufffd"
    reply.text.encode()


def test_openai_oddities_are_passed_over() -> None:
    chunks = [
        {"choices": [], "prompt_filter_results": []}, {"choices": None}, {}, ": keepalive", "null", "[]",
        delta(role="assistant", content=None), delta(content="hi", reasoning_content="hidden"),
        {"choices": [], "usage": {"prompt_tokens": 1}}, delta("stop", content=""),
    ]  # fmt: skip
    assert assembled(openai_chat.Stream(), chunks)[0] == "hi"


def test_openai_answer_is_read_when_it_came_unstreamed() -> None:
    stream = openai_chat.Stream()
    body = {
        "choices": [
            {
                "message": {
                    "content": "hi",
                    "tool_calls": [fragment('{"x": 1}', index=None, id="1", name="a")],
                },
                "finish_reason": "tool_calls",
            }
        ]
    }
    assert list(stream.whole(json.dumps(body).encode())) == ["hi"]
    assert calls_of(stream.reply()) == [("1", *A)]


@pytest.mark.parametrize("stream", [openai_chat.Stream, anthropic_messages.Stream])
def test_stream_is_broken_when_it_ends_without_saying_why(stream: type[Any]) -> None:
    cut = stream()
    list(cut.feed(Event(json.dumps(delta(content="half")))))
    with pytest.raises(ModelError) as raised:
        cut.reply()
    assert raised.value.reason == "stream_cut"


def block(kind: str, index: int, **fields: Any) -> dict[str, Any]:
    """One Anthropic event of a block."""
    return {"type": f"content_block_{kind}", "index": index, **fields}


def test_anthropic_calls_stay_apart_when_their_blocks_interleave() -> None:
    chunks = [
        {"type": "message_start", "message": {"usage": {}}}, {"type": "ping"},
        block("start", 0, content_block={"type": "thinking", "thinking": ""}),
        block("delta", 0, delta={"type": "thinking_delta", "thinking": "hidden"}),
        block("start", 1, content_block={"type": "text", "text": ""}),
        block("start", 2, content_block={"type": "tool_use", "id": "1", "name": "a", "input": {}}),
        block("start", 3, content_block={"type": "tool_use", "id": "2", "name": "b", "input": {}}),
        block("delta", 3, delta={"type": "input_json_delta", "partial_json": '{"y"'}),
        block("delta", 2, delta={"type": "input_json_delta", "partial_json": '{"x": '}),
        block("delta", 1, delta={"type": "text_delta", "text": "hi"}),
        block("delta", 3, delta={"type": "input_json_delta", "partial_json": ": 2}"}),
        block("delta", 2, delta={"type": "input_json_delta", "partial_json": "1}"}),
        {"type": "something_new", "index": 9},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ]  # fmt: skip
    shown, reply = assembled(anthropic_messages.Stream(), chunks)
    assert shown == reply.text == "hi"
    assert calls_of(reply) == [("1", *A), ("2", *B)]


def test_anthropic_answer_is_read_when_it_came_unstreamed() -> None:
    stream = anthropic_messages.Stream()
    content = [
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "1", "name": "a", "input": {"x": 1}},
    ]
    body = json.dumps({"content": content, "stop_reason": "tool_use"}).encode()
    assert list(stream.whole(body)) == ["hi"]
    assert calls_of(stream.reply()) == [("1", *A)]


OPENAI_OVERFLOW = b'{"error": {"code": "context_length_exceeded", "message": "too many tokens"}}'
ANTHROPIC_OVERFLOW = (
    b'{"error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens"}}'
)


@pytest.mark.parametrize(
    ("status", "headers", "body", "code", "again"),
    [
        (400, {}, OPENAI_OVERFLOW, "too_large", False),
        (400, {}, ANTHROPIC_OVERFLOW, "too_large", False),
        (400, {}, b'{"error": {"message": "max_tokens is invalid"}}', "invalid", False),
        (401, {}, b"", "unauthorized", False),
        (402, {"x-alcove-reason": "quota_charge_month"}, b"", "quota_exhausted", False),
        (413, {"x-alcove-reason": "larger_than_tokens_minute"}, b"", "too_large", False),
        (403, {"x-alcove-reason": "suspended"}, b"", "forbidden", False),
        (400, {"x-alcove-reason": "model_unknown"}, b"", "unavailable", False),
        (429, {}, b"", "rate_limited", True),
        (429, {"retry-after": "3"}, b"", "rate_limited", True),
        (429, {"retry-after": "3600"}, b"", "rate_limited", False),
        (429, {"x-should-retry": "false"}, b"", "rate_limited", False),
        (500, {}, b"not json", "unavailable", True),
        (503, {"retry-after": "soon"}, b"[]", "unavailable", True),
        (529, {}, b'{"error": "text"}', "unavailable", True),
    ],
)
def test_refusal_is_told_apart_by_what_to_do_about_it(
    status: int, headers: dict[str, str], body: bytes, code: str, again: bool
) -> None:
    error = refused(status, headers, body)
    assert error.code == code
    assert (pause_s(error, 0) is not None) is again
    assert isinstance(error, ContextTooLong) is (code == "too_large")
    assert error.message.endswith((".", "again."))


def test_pause_honours_what_the_provider_asked_and_grows() -> None:
    error = refused(429, {"retry-after": "3"}, b"")
    for attempt, longest in ((0, 3.5), (1, 4.0)):
        pause = pause_s(error, attempt)
        assert pause is not None
        assert 3 < pause <= longest
