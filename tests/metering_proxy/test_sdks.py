"""The official clients, as they are, through the meter: streams, tools, structured output, errors, retries."""

import json
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import openai
import pydantic
import pytest
from google import genai
from google.genai import errors as google_errors
from google.genai import types

from tests import scripted as s
from tests.metering_proxy.clients import anthropic_client, google_client, openai_client
from tests.metering_proxy.house import MODEL, House
from tests.scripted import Reply, ScriptedProvider
from tests.waiting import until

pytestmark = pytest.mark.thorough

_SAID: Any = [{"role": "user", "content": "hi"}]
_SCHEMA = {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]}


class Place(pydantic.BaseModel):
    """What structured output is parsed into."""

    zone: str


@pytest.fixture
def tried() -> list[str]:
    """The paths that a client asked for, as often as it did."""
    return []


@pytest.fixture
async def gpt(
    house: House, scripted: ScriptedProvider, tried: list[str]
) -> AsyncIterator[openai.AsyncOpenAI]:
    """OpenAI's client, with a tenant whose provider is OpenAI-compatible."""
    await house.connect(scripted)
    async with openai_client(await house.tenant("plus"), tried) as client:
        yield client


@pytest.fixture
async def claude(
    house: House, scripted: ScriptedProvider, tried: list[str]
) -> AsyncIterator[anthropic.AsyncAnthropic]:
    """Anthropic's client, with a tenant whose provider is Anthropic-compatible."""
    await house.connect(scripted, "anthropic_compatible")
    async with anthropic_client(await house.tenant("plus"), tried) as client:
        yield client


@pytest.fixture
async def gemini(
    house: House, scripted: ScriptedProvider, tried: list[str]
) -> AsyncIterator[genai.client.AsyncClient]:
    """Google's client, with a tenant whose provider is Google."""
    await house.connect(scripted, "google")
    async with google_client(await house.tenant("plus"), tried) as client:
        yield client


async def test_openai_client_streams_words_calls_and_usage(
    gpt: openai.AsyncOpenAI, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.calls("one ", "two", s.call("clock", zone="UTC")).using(7, 3))
    tool: Any = {"type": "function", "function": {"name": "clock", "parameters": _SCHEMA}}
    stream = await gpt.chat.completions.create(
        model="default",
        messages=_SAID,
        tools=[tool],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = [chunk async for chunk in stream]
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == "one two"
    calls = [call for delta in deltas for call in delta.tool_calls or []]
    arguments = "".join(call.function.arguments or "" for call in calls if call.function)
    assert json.loads(arguments) == {"zone": "UTC"}
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 10


async def test_openai_client_that_did_not_ask_sees_no_usage(
    gpt: openai.AsyncOpenAI, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text("hi").using(7, 3))
    stream = await gpt.chat.completions.create(model="default", messages=_SAID, stream=True)
    assert all([chunk.choices and chunk.usage is None async for chunk in stream])
    assert scripted.requests[-1].include_usage


async def test_openai_client_parses_structured_output(
    gpt: openai.AsyncOpenAI, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text('{"zone": "UTC"}'))
    answer = await gpt.chat.completions.parse(
        model="default", messages=_SAID, response_format=Place
    )
    assert answer.choices[0].message.parsed == Place(zone="UTC")
    assert scripted.requests[-1].json["response_format"]["type"] == "json_schema"


async def test_openai_client_streams_a_response(
    gpt: openai.AsyncOpenAI, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.calls("one ", "two", s.call("clock", zone="UTC")).using(7, 3))
    async with gpt.responses.stream(model="default", input="hi") as stream:
        async for _ in stream:
            pass
        final = await stream.get_final_response()
    assert final.output_text == "one two"
    assert final.output[1].type == "function_call"
    assert final.usage is not None
    assert final.usage.total_tokens == 10


async def test_openai_client_parses_a_structured_response(
    gpt: openai.AsyncOpenAI, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text('{"zone": "UTC"}'))
    answer = await gpt.responses.parse(model="default", input="hi", text_format=Place)
    assert answer.output_parsed == Place(zone="UTC")


async def test_openai_client_lists_models(gpt: openai.AsyncOpenAI) -> None:
    assert [model.id async for model in gpt.models.list()] == [f"scripted/{MODEL}"]


async def test_anthropic_client_streams_words_and_calls(
    claude: anthropic.AsyncAnthropic, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.calls("hm ", s.call("clock", zone="UTC")).using(7, 3))
    async with claude.messages.stream(
        model="default",
        max_tokens=500,
        messages=_SAID,
        tools=[{"name": "clock", "input_schema": _SCHEMA}],  # type: ignore[typeddict-item]
    ) as stream:
        final = await stream.get_final_message()
    assert [block.type for block in final.content] == ["text", "tool_use"]
    assert (final.usage.input_tokens, final.usage.output_tokens) == (7, 3)


async def test_anthropic_client_gets_structured_output_and_counts_tokens(
    claude: anthropic.AsyncAnthropic, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text('{"zone": "UTC"}'))
    answer = await claude.messages.parse(
        model="default", max_tokens=500, messages=_SAID, output_format=Place
    )
    assert answer.parsed_output == Place(zone="UTC")
    scripted.then(reply=Reply(body={"input_tokens": 14}))
    counted = await claude.messages.count_tokens(model="default", messages=_SAID)
    assert counted.input_tokens == 14


async def test_google_client_streams_words_and_calls(
    gemini: genai.client.AsyncClient, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.calls("one ", "two", s.call("clock", zone="UTC")).using(7, 3))
    clock = types.FunctionDeclaration(name="clock", parameters_json_schema=_SCHEMA)
    stream = await gemini.models.generate_content_stream(
        model=MODEL,
        contents="hi",
        config=types.GenerateContentConfig(tools=[types.Tool(function_declarations=[clock])]),
    )
    chunks = [chunk async for chunk in stream]
    assert "".join(_text(chunk) for chunk in chunks) == "one two"
    calls = [call for chunk in chunks for call in chunk.function_calls or []]
    assert [(call.name, call.args) for call in calls] == [("clock", {"zone": "UTC"})]
    assert chunks[-1].usage_metadata is not None
    assert chunks[-1].usage_metadata.total_token_count == 10


def _text(chunk: types.GenerateContentResponse) -> str:
    assert chunk.candidates is not None
    content = chunk.candidates[0].content
    return "".join(part.text or "" for part in (content.parts if content else None) or [])


async def test_google_client_parses_structured_output(
    gemini: genai.client.AsyncClient, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text('{"zone": "UTC"}'))
    config = types.GenerateContentConfig(
        response_mime_type="application/json", response_schema=Place, max_output_tokens=300
    )
    answer = await gemini.models.generate_content(model=MODEL, contents="hi", config=config)
    assert answer.parsed == Place(zone="UTC")
    assert scripted.requests[-1].json["generationConfig"]["maxOutputTokens"] == 300


async def test_providers_failure_is_repeated_by_the_client_and_counted_each_time(
    house: House, gpt: openai.AsyncOpenAI, scripted: ScriptedProvider, tried: list[str]
) -> None:
    scripted.then(reply=s.error(500, retry_after="0"))
    scripted.then(reply=s.error(429, retry_after="0"))
    scripted.then(reply=s.text("at last").using(7, 3))
    answer = await gpt.chat.completions.create(model="default", messages=_SAID)
    assert answer.choices[0].message.content == "at last"
    assert len(scripted.model_requests) == len(tried) == 3
    await until(lambda: not house.meter.ledger.running, what="the last call's settlement")
    await house.meter.ledger.sweep()  # behind it in the one writer's queue
    rows = await house.rows("SELECT outcome, charge_nanos > 0 AS paid FROM entry ORDER BY at")
    found = sorted((row["outcome"], row["paid"]) for row in rows)
    assert found == [("complete", 1), ("provider_error", 0), ("provider_error", 0)]


_REFUSED = [("gpt-99", 400, "model_unknown"), ("default", 402, "quota_charge_month")]


@pytest.mark.parametrize(("model", "status", "reason"), _REFUSED)
async def test_our_refusal_is_asked_for_once_and_reaches_nobody(
    house: House, scripted: ScriptedProvider, tried: list[str], model: str, status: int, reason: str
) -> None:
    for kind in ("openai_compatible", "anthropic_compatible"):
        await house.connect(scripted, kind)
    poor = await house.tenant("free", charge_month_nanos=0)
    async with openai_client(poor, tried) as gpt:
        with pytest.raises(openai.APIStatusError) as chat:
            await gpt.chat.completions.create(model=model, messages=_SAID)
        with pytest.raises(openai.APIStatusError) as response:
            await gpt.responses.create(model=model, input="hi", stream=True)
    for caught in (chat.value, response.value):
        assert (caught.status_code, caught.code) == (status, reason)
    async with anthropic_client(poor, tried) as claude:
        with pytest.raises(anthropic.APIStatusError) as message:
            named = model if model != "default" else f"scripted-2/{MODEL}"
            await claude.messages.create(model=named, max_tokens=500, messages=_SAID)
    assert message.value.status_code == status
    assert message.value.response.headers["x-alcove-reason"] == reason
    assert len(tried) == 3
    assert scripted.requests == []


@pytest.mark.parametrize(("model", "status", "reason"), _REFUSED)
async def test_google_client_understands_our_refusal(
    house: House, scripted: ScriptedProvider, tried: list[str], model: str, status: int, reason: str
) -> None:
    await house.connect(scripted, "google")
    poor = await house.tenant("free", charge_month_nanos=0)
    retries = types.HttpRetryOptions(attempts=3, initial_delay=0.01)
    async with google_client(poor, tried, retries) as gemini:
        with pytest.raises(google_errors.ClientError) as caught:
            await gemini.models.generate_content(model=model, contents="hi")
    assert caught.value.code == status
    assert caught.value.details["error"]["details"][0]["reason"] == reason.upper()
    assert len(tried) == 1
    assert scripted.requests == []
