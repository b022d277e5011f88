"""Pictures, speech and recordings: priced by the unit, or by tokens where the provider counts them."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from metering_proxy.providers import price_file
from metering_proxy.wires import durations
from tests import scripted as s
from tests.metering_proxy import recordings
from tests.metering_proxy.house import Answer, House, Tenant, a_house
from tests.scripted import Reply, ScriptedProvider

pytestmark = pytest.mark.thorough


@pytest.fixture
async def openai_tenant(house: House, scripted: ScriptedProvider) -> Tenant:
    """A tenant with money, where the scripted provider is connected as OpenAI."""
    await house.connect(scripted, "openai")
    return await house.tenant("free", charge_month_nanos=100_000_000_000)


_GROQ = """
[[model]]
provider = "groq"
id = "whisper-large-v3"
kind = "transcription"
context_tokens = 448
[[model.price]]
from = 2025-01-01
per_minute = "0.0018"
per_minute_least_seconds = 10
"""


async def _heard(tenant: Tenant, body: bytes) -> Answer:
    return await tenant.post("/v1/audio/transcriptions", body, content_type=recordings.FORM_TYPE)


@pytest.mark.parametrize(
    ("asked", "nanos"),
    [
        ({"quality": "standard", "size": "1024x1024"}, 2 * 40_000_000),
        ({"quality": "hd", "size": "1024x1792"}, 2 * 120_000_000),
        ({}, 2 * 120_000_000),  # the dearest, where nothing is said
        ({"size": "9x9"}, 2 * 120_000_000),
    ],
)
async def test_pictures_are_charged_by_quality_size_and_how_many_came(
    house: House,
    openai_tenant: Tenant,
    scripted: ScriptedProvider,
    asked: dict[str, Any],
    nanos: int,
) -> None:
    scripted.then(reply=Reply(body={"created": 1, "data": [{"url": "a"}, {"url": "b"}]}))
    body = {"model": "dall-e-3", "prompt": "a house", "n": 3, **asked}
    answer = await openai_tenant.post("/v1/images/generations", body)
    assert answer.body == b"".join(scripted.requests[-1].sent)
    [entry] = await house.entries(openai_tenant)
    assert (entry["charge_nanos"], entry["estimated"], entry["overrun"]) == (nanos, 0, 0)
    assert json.loads(entry["parts"])["units"] == 2


async def test_pictures_that_are_counted_in_tokens_cost_their_tokens(
    house: House, openai_tenant: Tenant, scripted: ScriptedProvider
) -> None:
    usage = {
        "input_tokens": 60,
        "input_tokens_details": {"text_tokens": 50, "image_tokens": 10},
        "output_tokens": 1120,
        "total_tokens": 1180,
    }
    scripted.then(reply=Reply(body={"data": [{"b64_json": "AAAA"}], "usage": usage}))
    body = {"model": "gpt-image-1", "prompt": "a house", "size": "1024x1024"}
    await openai_tenant.post("/v1/images/generations", body)
    [entry] = await house.entries(openai_tenant)
    assert entry["charge_nanos"] == 50 * 5_000 + 10 * 10_000 + 1120 * 40_000
    assert (entry["input_tokens"], entry["output_tokens"]) == (60, 1120)


_SPLIT = {"image_tokens": 1120, "text_tokens": 200}
_RATED = 'image_output = "40"\n'


@pytest.mark.parametrize("rate", ["10", None])
async def test_text_of_a_model_of_pictures_costs_the_rate_of_text_and_is_never_free(
    tmp_path: Path, scripted: ScriptedProvider, rate: str | None
) -> None:
    reviewed = price_file.FILE.read_text()
    assert reviewed.count(_RATED) == 1
    prices = tmp_path / "prices.toml"
    added = "" if rate is None else f'output = "{rate}"\n'
    prices.write_text(reviewed.replace(_RATED, _RATED + added))
    usage = {"input_tokens": 50, "output_tokens": 1320, "output_tokens_details": _SPLIT}
    scripted.then(reply=Reply(body={"data": [{"b64_json": "AAAA"}], "usage": usage}))
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/m.db", prices_file=prices) as house:
        await house.connect(scripted, "openai")
        tenant = await house.tenant("free", charge_month_nanos=100_000_000_000)
        body = {"model": "gpt-image-1", "prompt": "a house", "size": "1024x1024"}
        await tenant.post("/v1/images/generations", body)
        [entry] = await house.entries(tenant)
    text = 40_000 if rate is None else 10_000
    assert entry["charge_nanos"] == 50 * 5_000 + 1120 * 40_000 + 200 * text
    assert (entry["output_tokens"], entry["estimated"]) == (1320, 0)


async def test_pictures_without_a_word_of_tokens_cost_the_most_that_they_could(
    house: House, openai_tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=Reply(body={"data": [{"b64_json": "AAAA"}]}))
    body = {"model": "gpt-image-1", "prompt": "a house", "n": 2}
    await openai_tenant.post("/v1/images/generations", body)
    [entry] = await house.entries(openai_tenant)
    assert entry["estimated"] == 1
    assert entry["charge_nanos"] >= 2 * 6_240 * 40_000


async def test_streamed_picture_is_counted_when_it_is_complete(
    house: House, openai_tenant: Tenant, scripted: ScriptedProvider
) -> None:
    usage = {"input_tokens": 50, "output_tokens": 1220, "total_tokens": 1270}
    events = [
        {"type": "image_generation.partial_image", "b64_json": "AA", "partial_image_index": 0},
        {"type": "image_generation.completed", "b64_json": "AAAA", "usage": usage},
    ]
    raw = b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)
    scripted.then(reply=s.recorded(raw).byte_by_byte())
    body = {"model": "gpt-image-1", "prompt": "x", "stream": True, "partial_images": 1}
    answer = await openai_tenant.post("/v1/images/generations", body)
    assert answer.body == raw
    [entry] = await house.entries(openai_tenant)
    assert (entry["charge_nanos"], entry["estimated"]) == (50 * 5_000 + 1220 * 40_000, 0)


async def test_picture_is_refused_when_the_month_cannot_pay_the_dearest(
    house: House, openai_tenant: Tenant, scripted: ScriptedProvider
) -> None:
    poor = await house.tenant("free", charge_month_nanos=100_000_000)
    body = {"model": "dall-e-3", "prompt": "a house"}
    assert (await poor.post("/v1/images/generations", body)).status == 413
    assert scripted.requests == []


async def test_speech_costs_its_characters_and_sound_passes_unread(
    house: House, openai_tenant: Tenant, scripted: ScriptedProvider
) -> None:
    sound = bytes(range(256)) * 400
    scripted.then(reply=s.recorded(sound, "audio/mpeg"))
    body = {"model": "tts-1", "input": "Grüße 👩🏽‍🚀!", "voice": "alloy"}
    answer = await openai_tenant.post("/v1/audio/speech", body)
    assert answer.body == sound
    [entry] = await house.entries(openai_tenant)
    assert (entry["charge_nanos"], entry["estimated"]) == (11 * 15_000, 0)


@pytest.mark.parametrize("path", ["/v1/audio/speech", "/v1/images/generations"])
async def test_nothing_is_charged_when_the_provider_refuses(
    house: House, openai_tenant: Tenant, scripted: ScriptedProvider, path: str
) -> None:
    scripted.then(reply=s.error(400, "no such voice"))
    speech = {"model": "tts-1", "input": "hi", "voice": "x"}
    image = {"model": "dall-e-3", "prompt": "hi"}
    await openai_tenant.post(path, speech if "speech" in path else image)
    [entry] = await house.entries(openai_tenant)
    assert (entry["outcome"], entry["cost_nanos"], entry["charge_nanos"]) == (
        "provider_error",
        0,
        0,
    )


@pytest.mark.parametrize(
    ("answer", "nanos"),
    [
        ({"text": "hm"}, 1_500 * 100),
        ({"text": "hm", "usage": {"type": "duration", "seconds": 2}}, 2_000 * 100),
        (b"1\n00:00:00,000 --> 00:00:01,500\nhm\n", 1_500 * 100),
    ],
    ids=["header", "told", "subtitles"],
)
async def test_recording_costs_its_seconds(
    house: House, openai_tenant: Tenant, scripted: ScriptedProvider, answer: Any, nanos: int
) -> None:
    scripted.then(reply=Reply(body=answer))
    body = recordings.form(recordings.wav(1.5), language="de")
    assert (await _heard(openai_tenant, body)).status == 200
    assert scripted.requests[-1].body == body
    [entry] = await house.entries(openai_tenant)
    assert (entry["charge_nanos"], entry["estimated"]) == (nanos, 0)


@pytest.mark.parametrize(("seconds", "paid_ms"), [(1.5, 10_000), (10.0, 10_000), (12.5, 12_500)])
async def test_short_recording_costs_the_least_that_is_billed(
    tmp_path: Path, scripted: ScriptedProvider, seconds: float, paid_ms: int
) -> None:
    """genai-prices#578: Groq bills ten seconds at least."""
    prices = tmp_path / "prices.toml"
    prices.write_text(_GROQ)
    scripted.then(reply=Reply(body={"text": "hm"}))
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/m.db", prices_file=prices) as house:
        await house.connect(scripted, "groq")
        tenant = await house.tenant("free", charge_month_nanos=100_000_000_000)
        await _heard(tenant, recordings.form(recordings.wav(seconds), model="whisper-large-v3"))
        [entry] = await house.entries(tenant)
        assert (entry["charge_nanos"], entry["overrun"]) == (paid_ms * 30, 0)


async def test_recording_costs_its_tokens_where_the_model_counts_them(
    house: House, openai_tenant: Tenant, scripted: ScriptedProvider
) -> None:
    usage = {
        "type": "tokens",
        "input_tokens": 14,
        "input_token_details": {"text_tokens": 4, "audio_tokens": 10},
        "output_tokens": 45,
        "total_tokens": 59,
    }
    scripted.then(reply=Reply(body={"text": "hm", "usage": usage}))
    body = recordings.form(recordings.wav(1), model="OpenAI/GPT-4o-transcribe")
    await _heard(openai_tenant, body)
    sent = scripted.requests[-1].body
    assert sent == body.replace(b"OpenAI/GPT-4o-transcribe", b"gpt-4o-transcribe")
    [entry] = await house.entries(openai_tenant)
    assert entry["charge_nanos"] == 4 * 2_500 + 10 * 6_000 + 45 * 10_000


@pytest.mark.parametrize(
    "recording",
    [b"", b"RIFF", b"not a sound", recordings.flac(0), b"\x1aE\xdf\xa3webm", recordings.wav(0)],
    ids=["empty", "cut", "text", "unknown length", "webm", "nothing"],
)
async def test_recording_is_refused_when_its_length_cannot_be_read(
    openai_tenant: Tenant, scripted: ScriptedProvider, recording: bytes
) -> None:
    answer = await _heard(openai_tenant, recordings.form(recording))
    assert answer.status == 400
    assert json.loads(answer.body)["error"]["param"] == "file"
    assert scripted.requests == []


@pytest.mark.parametrize(
    ("recording", "seconds"),
    [
        (recordings.wav(2.5), Fraction(5, 2)),
        (recordings.wav(2.5, claimed_bytes=16), Fraction(5, 2)),  # the header says a millisecond
        (recordings.flac(66_150), Fraction(3, 2)),
        (recordings.mp3(100), Fraction(1152 * 100, 44_100)),
        (b"ID3\x03\x00\x00\x00\x00\x00\x05tags!" + recordings.mp3(2), Fraction(2304, 44_100)),
        (recordings.opus(96_000), Fraction(2)),
        (recordings.mp4(5_000, 1_000), Fraction(5)),
        (recordings.mp4(1, 1_000, track=9_000), Fraction(9)),
    ],
    ids=["wav", "lying wav", "flac", "mp3", "tagged mp3", "opus", "mp4", "lying mp4"],
)
def test_length_is_the_longest_that_a_file_holds(recording: bytes, seconds: Fraction) -> None:
    assert durations.seconds(recording) == seconds


@pytest.mark.parametrize("at", range(0, 60, 3))
def test_length_of_a_file_that_is_cut_is_none_or_less_and_never_a_failure(at: int) -> None:
    for whole in (
        recordings.wav(1),
        recordings.flac(9),
        recordings.mp3(1),
        recordings.opus(48_000),
    ):
        found, most = durations.seconds(whole[:at]), durations.seconds(whole)
        assert most is not None
        assert found is None or found <= most


async def test_counting_tokens_is_a_request_that_costs_nothing(
    house: House, scripted: ScriptedProvider
) -> None:
    await house.connect(scripted, "anthropic_compatible")
    tenant = await house.tenant("free", charge_month_nanos=1)
    scripted.then(reply=Reply(body={"input_tokens": 14}))
    body = {"model": "default", "messages": [{"role": "user", "content": "hi"}]}
    answer = await tenant.post("/v1/messages/count_tokens", body, anthropic_beta="b-2025")
    assert (answer.status, json.loads(answer.body)) == (200, {"input_tokens": 14})
    assert scripted.requests[-1].path == "/v1/messages/count_tokens"
    assert scripted.requests[-1].headers["anthropic-beta"] == "b-2025"
    [entry] = await house.entries(tenant)
    assert (entry["cost_nanos"], entry["charge_nanos"], entry["input_tokens"]) == (0, 0, 0)
    quota = await house.client.quota(tenant.id)
    assert quota.charge_month.spent_nanos == 0
    assert quota.requests_minute.used == 1
