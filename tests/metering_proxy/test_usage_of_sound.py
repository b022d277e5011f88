"""Usage of speech and recordings in public bug reports, each as small as can be."""

import json
from typing import Any

import pytest

from metering_proxy.pricing import Usage
from metering_proxy.wires.openai_speech import OpenAiSpeech
from metering_proxy.wires.openai_transcriptions import OpenAiTranscriptions
from metering_proxy.wires.wire import Reader
from tests.metering_proxy import small_answers
from tests.metering_proxy.small_answers import events

_TOKENS = {"input_tokens": 14, "output_tokens": 45, "total_tokens": 59}
_HEARD = {"input_token_details": {"text_tokens": 1, "audio_tokens": 13}}
_LASTED = Usage(units=11_000, unit="millisecond")
_RECORDINGS = [
    ("aisix#868", {"usage": {"type": "duration", "seconds": 11}}, _LASTED),
    ("aisix#868 verbose", {"duration": 11.0, "segments": []}, _LASTED),
    (
        "usage before duration",
        {"duration": 8.47, "usage": {"type": "duration", "seconds": 11}},
        _LASTED,
    ),
    ("bifrost#7089", {"usage": {**_TOKENS, **_HEARD}}, Usage(input=1, audio_input=13, output=45)),
    ("nothing", {}, None),
    ("nonsense", {"duration": "long", "usage": {"seconds": -1}}, None),
]


@pytest.mark.parametrize(
    ("said", "expected"), [pytest.param(*row, id=name) for name, *row in _RECORDINGS]
)
def test_recording_costs_what_the_provider_heard(said: Any, expected: Usage | None) -> None:
    body = json.dumps({"text": "hello", **said}).encode()
    small_answers.check("openai_transcriptions", "openai", body, expected)


def _speech(counted: Usage) -> Reader:
    body = json.dumps({"model": "tts-1", "input": "x" * counted.units, "voice": "v"}).encode()
    wire = OpenAiSpeech()
    return wire.reader(wire.read(body))


_SPOKEN = Usage(units=12, unit="character")


def test_speech_in_events_tells_its_tokens_at_the_end() -> None:
    """new-api#2434: whole speech has no usage, as events it has."""
    reader = _speech(_SPOKEN)
    reader.event(b'{"type": "speech.audio.delta", "audio": "AAAA"}')
    assert reader.found.reported_usage is None
    reader.event(json.dumps({"type": "speech.audio.done", "usage": _TOKENS}).encode())
    assert reader.found.reported_usage == Usage(
        input=14, audio_output=45, units=12, unit="character"
    )


def test_speech_in_events_without_tokens_costs_its_characters() -> None:
    reader = _speech(_SPOKEN)
    reader.event(b'{"type": "speech.audio.done"}')
    assert reader.found.reported_usage == _SPOKEN


def test_error_among_the_events_of_sound_is_seen() -> None:
    error = b'{"type": "error", "error": {"message": "no voice"}}'
    for reader in (_speech(_SPOKEN), OpenAiTranscriptions().reader()):
        reader.event(error)
        assert reader.found.failed


def test_last_event_of_a_recording_counts_its_tokens() -> None:
    done = {"type": "transcript.text.done", "text": "hello", "usage": {**_TOKENS, **_HEARD}}
    delta = {"type": "transcript.text.delta", "delta": "hello"}
    expected = Usage(input=1, audio_input=13, output=45)
    small_answers.check("openai_transcriptions", "openai", events(delta, done), expected)
