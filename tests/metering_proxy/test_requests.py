"""Requests are read strictly and edited by splicing; nothing that is priced is taken on trust."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.kit.errors import AlcoveError
from metering_proxy.wires import document
from metering_proxy.wires.anthropic_messages import AnthropicMessages
from metering_proxy.wires.openai_chat import OpenAiChat
from metering_proxy.wires.openai_embeddings import OpenAiEmbeddings
from metering_proxy.wires.wire import Wire

_MESSAGES = [{"role": "user", "content": "hi"}]
_CHAT = {"model": "m", "messages": _MESSAGES}
_ANTHROPIC = {"model": "m", "messages": _MESSAGES, "max_tokens": 10}
_EMBED = {"model": "m", "input": "hi"}
_WRONG_NUMBERS = [
    "true",
    "false",
    "-1",
    "0",
    "1.5",
    "1e3",
    '"16"',
    "[]",
    "{}",
    "1" * 30,
    "NaN",
    "Infinity",
]


def _raw(body: dict[str, Any], field: str, value: str) -> bytes:
    text = json.dumps({**body, field: 0})
    return text.replace(f'"{field}": 0', f'"{field}": {value}').encode()


@pytest.mark.parametrize("value", _WRONG_NUMBERS)
@pytest.mark.parametrize(
    ("wire", "body", "field"),
    [
        (OpenAiChat(), _CHAT, "max_tokens"),
        (OpenAiChat(), _CHAT, "max_completion_tokens"),
        (OpenAiChat(), _CHAT, "n"),
        (AnthropicMessages(), _ANTHROPIC, "max_tokens"),
        (OpenAiEmbeddings(), _EMBED, "dimensions"),
    ],
    ids=["chat-max_tokens", "chat-max_completion_tokens", "chat-n", "anthropic", "dimensions"],
)
def test_number_is_refused_when_it_is_not_a_sane_count(
    wire: Wire, body: dict[str, Any], field: str, value: str
) -> None:
    with pytest.raises(AlcoveError) as caught:
        wire.read(_raw(body, field, value))
    assert caught.value.code == "invalid"


@pytest.mark.parametrize(
    "body",
    [
        {**_CHAT, "max_tokens": 5, "max_completion_tokens": 5},
        {**_CHAT, "stream": 1},
        {**_CHAT, "stream": "true"},
        {**_CHAT, "stream": True, "stream_options": [1]},
        {**_CHAT, "stream": True, "stream_options": {"include_usage": 1}},
        {**_CHAT, "model": 5},
        {**_CHAT, "model": ""},
        {**_CHAT, "messages": []},
        {**_CHAT, "messages": "hi"},
        {**_CHAT, "service_tier": 3},
        {**_CHAT, "web_search_options": {}},
        {"messages": _MESSAGES},
    ],
    ids=str,
)
def test_chat_is_refused_when_a_field_that_costs_is_of_the_wrong_kind(body: dict[str, Any]) -> None:
    with pytest.raises(AlcoveError) as caught:
        OpenAiChat().read(json.dumps(body).encode())
    assert caught.value.code == "invalid"


@pytest.mark.parametrize(
    "body",
    [
        {"model": "m", "messages": _MESSAGES},
        {**_ANTHROPIC, "tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        {**_ANTHROPIC, "mcp_servers": [{"url": "https://x"}]},
        {**_ANTHROPIC, "thinking": {"type": "enabled", "budget_tokens": True}},
        {**_ANTHROPIC, "thinking": "enabled"},
    ],
    ids=str,
)
def test_message_is_refused_when_its_cost_cannot_be_bounded(body: dict[str, Any]) -> None:
    with pytest.raises(AlcoveError) as caught:
        AnthropicMessages().read(json.dumps(body).encode())
    assert caught.value.code == "invalid"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"null",
        b'{"model":"m"',
        b'{"model":"m"} x',
        b'{"model":"m","model":"n"}',
        b'{"model":"m",}',
        b'{"model" "m"}',
        b'{model:"m"}',
        b'{"a":NaN}',
        b'{"a":\xff"x"}',
        b'{"a":"\xed\xa0\x80"}',
        b"\xef\xbb\xbf{}",
        b'{"a":"line\nbreak"}',
        b'{"a":' + b"9" * 10_000 + b"}",
        b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    ],
    ids=lambda raw: raw[:24].decode("latin-1"),
)
def test_body_is_refused_when_it_is_not_one_plain_object(raw: bytes) -> None:
    with pytest.raises(AlcoveError) as caught:
        document.read(raw)
    assert caught.value.code == "invalid"


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


@pytest.mark.thorough
@given(
    body=st.dictionaries(st.text(max_size=6), _json, max_size=5),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 2]),
    value=st.integers(0, 10**6),
)
def test_splicing_changes_the_named_member_and_no_other_byte(
    body: dict[str, Any], ascii_only: bool, indent: int | None, value: int
) -> None:
    raw = json.dumps(body, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    read = document.read(raw)
    assert read.edited([]) == raw
    edited = read.edited([read.put("max_tokens", value), read.put("model", "x")])
    assert json.loads(edited) == {**body, "max_tokens": value, "model": "x"}
    for name, member in read.members.items():
        if name not in ("max_tokens", "model"):
            assert read.text[member.start : member.end].encode() in edited


@pytest.mark.parametrize("unit", [b"[],", b"{},", b"1,", b'"",', b'{"a":[{}]},', b'"\\",', b'"[",'])
def test_body_is_refused_at_once_when_it_holds_more_values_than_any_real_one(unit: bytes) -> None:
    content = b"[" + unit * ((8 << 20) // len(unit)) + b"1]"
    body = b'{"model":"m","messages":[{"role":"user","content":%b}]}' % content
    began_s = time.thread_time()
    with pytest.raises(AlcoveError) as caught:
        OpenAiChat().read(body)
    assert caught.value.code == "invalid"
    assert time.thread_time() - began_s < 1.0


def test_text_is_read_when_it_looks_like_many_values() -> None:
    text = '[1,2,{},\\,"' * 200_000
    body = {**_CHAT, "messages": [{"role": "user", "content": text}]}
    assert OpenAiChat().read(json.dumps(body).encode()).document.get("messages") == body["messages"]


def test_embeddings_are_read_when_they_are_as_many_tokens_as_a_provider_takes() -> None:
    body = {**_EMBED, "input": [[7] * 1_500] * 200}
    assert OpenAiEmbeddings().read(json.dumps(body).encode()).model == "m"


_TEXT = "A" * 100_000


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (
            AnthropicMessages(),
            {
                **_ANTHROPIC,
                "tools": [
                    {"name": "t", "input_schema": {"type": "image", "source": {"data": _TEXT}}}
                ],
            },
        ),
        (
            AnthropicMessages(),
            {
                **_ANTHROPIC,
                "messages": [
                    {
                        "role": "assistant",
                        "content": [
                            {
                                "type": "tool_use",
                                "id": "a",
                                "name": "t",
                                "input": {"type": "image", "source": {"data": _TEXT}},
                            }
                        ],
                    }
                ],
            },
        ),
        (
            OpenAiChat(),
            {
                **_CHAT,
                "tools": [
                    {
                        "type": "function",
                        "function": {
                            "name": "t",
                            "parameters": {"type": "image_url", "image_url": f"data:{_TEXT}"},
                        },
                    }
                ],
            },
        ),
    ],
    ids=["schema", "arguments", "openai-schema"],
)
def test_text_is_bound_as_text_when_it_poses_as_an_image(wire: Wire, body: dict[str, Any]) -> None:
    survey = wire.read(json.dumps(body).encode()).survey
    assert survey.bound(context=10**6, image_tokens=1_500) > len(_TEXT)


def test_image_counts_as_one_when_a_tool_gave_it() -> None:
    picture = {"type": "image", "source": {"type": "base64", "data": _TEXT}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": [picture]}
    body = {**_ANTHROPIC, "messages": [{"role": "user", "content": [result]}]}
    survey = AnthropicMessages().read(json.dumps(body).encode()).survey
    assert survey.images == 1
    assert survey.bound(context=10**6, image_tokens=1_500) < 5_000


@pytest.mark.parametrize("kind", [["string", "null"], {"a": 1}, 7, True])
def test_request_is_read_when_a_type_is_no_word(kind: object) -> None:
    tool = {"name": "t", "input_schema": {"type": "object", "properties": {"a": {"type": kind}}}}
    part = {"type": kind, "text": "hi"}
    body = {**_ANTHROPIC, "tools": [tool], "messages": [{"role": "user", "content": [part]}]}
    assert AnthropicMessages().read(json.dumps(body).encode()).survey.tools == 1


def test_bound_covers_bytes_and_images_are_not_counted_as_text() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}
    content = [{"type": "text", "text": "日本" * 1000}, picture]
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": content}]}).encode()
    survey = OpenAiChat().read(body).survey
    assert survey.images == 1
    bound = survey.bound(context=10**6, image_tokens=1_500)
    assert 6_000 + 1_500 <= bound < 20_000
    assert survey.bound(context=10**6, image_tokens=None) > 100_000
    assert survey.bound(context=4_096, image_tokens=1_500) == 4_096


@pytest.mark.parametrize("kind", ["document", "file", "container_upload"])
def test_bound_is_the_context_window_when_something_is_not_in_the_body(kind: str) -> None:
    content = [{"type": "tool_result", "content": [{"type": kind, "source": {"url": "https://x"}}]}]
    body = json.dumps({**_ANTHROPIC, "messages": [{"role": "user", "content": content}]}).encode()
    assert (
        AnthropicMessages().read(body).survey.bound(context=200_000, image_tokens=5_000) == 200_000
    )


def test_cache_lifetimes_are_seen_at_any_depth() -> None:
    block = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    body = {**_ANTHROPIC, "system": [block]}
    survey = AnthropicMessages().read(json.dumps(body).encode()).survey
    assert survey.cached
    assert survey.cached_1h
    plain = AnthropicMessages().read(json.dumps(_ANTHROPIC).encode()).survey
    assert not plain.cached
