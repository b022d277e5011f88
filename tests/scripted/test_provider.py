"""The instrument itself: real clients understand it, and it fails a test that leaves its script."""

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp
import anthropic
import openai
import pytest

from infra.kit import sse
from tests import scripted as s
from tests.waiting import until

MESSAGES: list[dict[str, str]] = [{"role": "user", "content": "hello there"}]


@pytest.fixture
async def provider() -> AsyncIterator[s.ScriptedProvider]:
    async with s.serve(s.ScriptedProvider()) as provider:
        yield provider


@pytest.fixture
async def gpt(provider: s.ScriptedProvider) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=provider.base_url, api_key="k", max_retries=0) as client:
        yield client


@pytest.fixture
async def claude(provider: s.ScriptedProvider) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(
        base_url=provider.url, api_key="k", max_retries=0
    ) as client:
        yield client


async def posted(provider: s.ScriptedProvider, path: str, **body: object) -> bytes:
    """The bytes of an answer, whatever they are."""
    full = {"model": "m", "messages": MESSAGES, "stream": True} | body
    async with (
        aiohttp.ClientSession() as session,
        session.post(provider.url + path, json=full) as response,
    ):
        return await response.read()


async def test_openai_client_reads_text_calls_and_usage_when_streaming(
    provider: s.ScriptedProvider, gpt: openai.AsyncOpenAI
) -> None:
    reply = s.calls("one ", "two", s.call("clock", zone="UTC")).using(93, 46, cache_read=1024)
    provider.then(s.last_contains("hello"), reply=reply)
    stream = await gpt.chat.completions.create(
        model="m", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    deltas = [c.choices[0].delta for c in chunks if c.choices]
    assert "".join(d.content or "" for d in deltas) == "one two"
    fragments = [d.tool_calls[0].function.arguments or "" for d in deltas if d.tool_calls]
    assert json.loads("".join(fragments)) == {"zone": "UTC"}
    assert chunks[-1].choices == []
    assert chunks[-1].usage.prompt_tokens == 1117
    assert chunks[-1].usage.completion_tokens == 46
    assert all(c.usage is None for c in chunks[:-1])
    provider.verify()


async def test_openai_stream_tells_no_usage_when_not_asked(
    provider: s.ScriptedProvider, gpt: openai.AsyncOpenAI
) -> None:
    provider.then(reply=s.text("hi"))
    stream = await gpt.chat.completions.create(model="m", messages=MESSAGES, stream=True)
    chunks = [chunk async for chunk in stream]
    assert all(c.choices and c.usage is None for c in chunks)


async def test_openai_client_reads_the_whole_answer_when_not_streaming(
    provider: s.ScriptedProvider, gpt: openai.AsyncOpenAI
) -> None:
    provider.then(reply=s.text("three words here"))
    answer = await gpt.chat.completions.create(model="m", messages=MESSAGES)
    assert answer.choices[0].message.content == "three words here"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (3, 3)


async def test_anthropic_client_reads_text_calls_and_usage_when_streaming(
    provider: s.ScriptedProvider, claude: anthropic.AsyncAnthropic
) -> None:
    reply = s.calls("hm ", s.call("clock", zone="UTC"), s.call("notes", q="x"))
    provider.then(reply=reply.using(25, 15, cache_read=2000, cache_write_5m=600))
    async with claude.messages.stream(model="m", max_tokens=64, messages=MESSAGES) as stream:
        final = await stream.get_final_message()
    assert [b.type for b in final.content] == ["text", "tool_use", "tool_use"]
    assert final.content[1].input == {"zone": "UTC"}
    assert final.content[2].input == {"q": "x"}
    usage = final.usage
    assert (usage.input_tokens, usage.output_tokens) == (25, 15)
    assert usage.cache_read_input_tokens == 2000
    assert final.stop_reason == "tool_use"


async def test_anthropic_client_reads_the_whole_answer_when_not_streaming(
    provider: s.ScriptedProvider, claude: anthropic.AsyncAnthropic
) -> None:
    provider.then(reply=s.refusal("I will not"))
    answer = await claude.messages.create(model="m", max_tokens=64, messages=MESSAGES)
    assert answer.content[0].text == "I will not"
    assert answer.stop_reason == "refusal"


async def test_one_step_serves_either_wire_when_shared(provider: s.ScriptedProvider) -> None:
    for path in ("/v1/chat/completions", "/v1/messages"):
        provider.then(s.last_contains("hello"), reply=s.text("same"))
        assert b"same" in await posted(provider, path)
    assert [r.wire for r in provider.requests] == ["openai", "anthropic"]


async def test_answer_waits_at_a_gate_until_the_test_opens_it(
    provider: s.ScriptedProvider, gpt: openai.AsyncOpenAI
) -> None:
    gate = s.Gate()
    provider.then(reply=s.text("before", gate, "after"))
    stream = await gpt.chat.completions.create(model="m", messages=MESSAGES, stream=True)
    await gate.reached()
    seen: list[str] = []
    async for chunk in stream:
        seen.append(chunk.choices[0].delta.content or "")
        if seen[-1] == "before":
            assert provider.requests[0].outcome is None
            gate.open()
    assert "".join(seen) == "beforeafter"
    await until(lambda: provider.requests[0].outcome == "complete")


async def test_leaving_is_noticed_when_the_answer_waits_at_a_gate(
    provider: s.ScriptedProvider,
) -> None:
    gate = s.Gate()
    provider.then(reply=s.text("before", gate, "after"))
    asking = asyncio.create_task(posted(provider, "/v1/chat/completions"))
    await gate.reached()
    asking.cancel()
    await until(lambda: provider.requests[0].outcome == "left")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
async def test_error_speaks_the_wire_when_scripted(provider: s.ScriptedProvider, path: str) -> None:
    provider.then(reply=s.error(429, "slow down", retry_after="7"))
    async with aiohttp.ClientSession() as session:
        body = {"model": "m", "messages": MESSAGES}
        async with session.post(provider.url + path, json=body) as response:
            assert response.status == 429
            assert response.headers["retry-after"] == "7"
            found = (await response.json())["error"]
    assert found["message"] == "slow down"
    assert found["type"] in ("rate_limit_error", "rate_limit_exceeded")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
async def test_overflow_depends_on_the_size_when_scripted(
    provider: s.ScriptedProvider, path: str
) -> None:
    provider.then(reply=s.text("fits").overflow_above(10))
    provider.then(reply=s.text("fits").overflow_above(10))
    assert b"fits" in await posted(provider, path)
    long = [{"role": "user", "content": "word " * 20}]
    refused = await posted(provider, path, messages=long)
    assert b"context length" in refused or b"too long" in refused


async def test_stream_breaks_after_the_bytes_when_dropped(provider: s.ScriptedProvider) -> None:
    provider.then(reply=s.text("abc").dropped_after(100))
    with pytest.raises(aiohttp.ClientError):
        await posted(provider, "/v1/chat/completions")
    assert provider.requests[0].outcome == "dropped"
    assert provider.requests[0].sent_bytes == 100


@pytest.mark.parametrize("manner", ["cutting_runes", "byte_by_byte", "with_crlf", "with_comments"])
async def test_events_are_the_same_when_only_their_bytes_differ(
    provider: s.ScriptedProvider, manner: str
) -> None:
    reply = s.text("grüß 🌍", " 明天")
    texts = []
    for shaped in (reply, getattr(reply, manner)()):
        provider.then(reply=shaped)
        raw = await posted(provider, "/v1/messages")
        events = [json.loads(e.data) for e in sse.Parser().feed(raw)]
        texts.append(
            "".join(
                e["delta"].get("text", "") for e in events if e["type"] == "content_block_delta"
            )
        )
    assert texts == ["grüß 🌍 明天"] * 2
    if manner == "cutting_runes":
        assert b"\xf0" in {piece[-1:] for piece in provider.requests[1].sent}


async def test_misbehaviour_is_on_the_wire_when_scripted(provider: s.ScriptedProvider) -> None:
    chat, claude = "/v1/chat/completions", "/v1/messages"
    provider.then(reply=s.text("a", s.StreamError("overloaded_error", "Overloaded"), "b"))
    raw = await posted(provider, claude)
    assert b"event: error" in raw
    assert b"message_stop" not in raw
    provider.then(reply=s.calls(s.Call("a", "{}", index=0), s.Call("b", "{}", index=0)))
    assert (await posted(provider, chat)).count(b'"index": 0, "id"') == 2
    provider.then(reply=s.calls(s.Call("a", "file=x")))
    assert b"file=x" in (await posted(provider, chat, stream=False))
    provider.then(reply=s.text("a b", "c").with_usage_in_every_chunk())
    assert (await posted(provider, chat)).count(b'"completion_tokens": 2') == 4
    provider.then(reply=s.text("a").with_raw_usage({"prompt_tokens": -5}))
    assert b'{"prompt_tokens": -5}' in await posted(provider, chat, stream=False)
    provider.then(reply=s.text("a").without_usage())
    assert b"usage" not in await posted(provider, chat, stream=False)
    provider.then(reply=s.text("a").without_end())
    assert b"[DONE]" not in await posted(provider, chat)
    provider.then(reply=s.text())
    assert b'"content": null' in await posted(provider, chat, stream=False)


async def test_verify_fails_when_a_request_is_unexpected(provider: s.ScriptedProvider) -> None:
    assert b"expects no such request" in await posted(provider, "/v1/messages")
    with pytest.raises(AssertionError, match="unexpected request"):
        provider.verify()


async def test_verify_fails_when_a_step_is_left_over(provider: s.ScriptedProvider) -> None:
    provider.then(s.last_contains("never"), reply=s.text("x"))
    with pytest.raises(
        AssertionError, match=r"step never taken: \[main\] last message contains 'never'"
    ):
        provider.verify()


async def test_verify_fails_when_the_order_is_wrong(provider: s.ScriptedProvider) -> None:
    provider.then(s.last_contains("first"), reply=s.text("x"))
    provider.then(s.last_contains("hello"), reply=s.text("y"))
    await posted(provider, "/v1/messages")
    with pytest.raises(AssertionError, match="unexpected request"):
        provider.verify()


async def test_verify_fails_when_a_result_has_no_call(provider: s.ScriptedProvider) -> None:
    provider.then(reply=s.text("x"))
    orphan = [*MESSAGES, {"role": "tool", "tool_call_id": "call_9", "content": "?"}]
    await posted(provider, "/v1/chat/completions", messages=orphan)
    with pytest.raises(AssertionError, match="result call_9 has no call"):
        provider.verify()


async def test_lanes_go_their_own_pace_when_two_talk_at_once(provider: s.ScriptedProvider) -> None:
    provider.then(s.last_contains("hello"), reply=s.text("m1"), lane="main")
    provider.then(s.last_contains("title"), reply=s.text("t1"), lane="title")
    title = [{"role": "user", "content": "title please"}]
    assert b"t1" in await posted(provider, "/v1/messages", messages=title)
    assert b"m1" in await posted(provider, "/v1/messages")
    provider.verify()


async def test_embeddings_are_near_when_texts_share_words(
    provider: s.ScriptedProvider, gpt: openai.AsyncOpenAI
) -> None:
    found = await gpt.embeddings.create(
        model="e", input=["red green blue", "red green cyan", "salt"], encoding_format="float"
    )
    a, b, c = (item.embedding for item in found.data)
    assert len(a) == 384
    assert sum(x * y for x, y in zip(a, b, strict=True)) > 0.5
    assert abs(sum(x * y for x, y in zip(a, c, strict=True))) < 0.5
    assert found.usage.prompt_tokens == 7
