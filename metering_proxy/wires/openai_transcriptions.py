"""OpenAI transcriptions, `POST /v1/audio/transcriptions` (https://platform.openai.com/docs/api-reference/audio).

Some models are priced by the second, so a recording must say how long it lasts; others by tokens, which the
answer counts and the context window bounds.
"""

import math
import re
from typing import Any

from metering_proxy.pricing import Usage
from metering_proxy.wires import answers, durations, forms, members, openai_usage
from metering_proxy.wires.dialect import PLAIN, Dialect, at
from metering_proxy.wires.document import invalid
from metering_proxy.wires.survey import Survey
from metering_proxy.wires.wire import BARE, Ask, Envelope, Found, Reader, Shape

UNIT = "millisecond"


class OpenAiTranscriptions:
    """See wire.Wire."""

    name = "openai_transcriptions"
    shape: Shape = "openai"
    operation = "transcription"

    def read(self, body: bytes, envelope: Envelope = BARE) -> Ask:
        """See wire.Wire. Raises `invalid` for a recording whose duration cannot be read."""
        form = forms.read(body, envelope.content_type)
        recording, model = form.file("file"), form.value("model")
        if not model:
            raise invalid("model must be the id of a model", "model")
        if recording is None:
            raise invalid("file must be a recording", "file")
        lasts_s = durations.seconds(recording)
        if lasts_s is None:
            raise invalid(
                "how long the recording lasts cannot be read from its header "
                "(WAV, FLAC, MP3, Ogg and MP4 can)",
                "file",
            )
        return Ask(
            document=form,
            model=model,
            kind="transcription",
            survey=Survey(0, opaque=True, audio=True),
            stream=form.value("stream") == "true",
            counted=Usage(units=math.ceil(lasts_s * 1000), unit=UNIT),
            strange=members.others(form.fields, self.name),
        )

    def reader(self, ask: Ask | None = None, dialect: Dialect = PLAIN) -> Reader:
        """See wire.Wire."""
        return _Reader(ask.counted if ask else None)


class _Reader:
    telling: re.Pattern[bytes] | None = None

    def __init__(self, counted: Usage | None) -> None:
        self.found = Found()
        self._counted = counted

    def event(self, data: bytes) -> bool:
        event = self.found.event(data)
        if at(event, "type") == "transcript.text.done":
            self.found.usage, self.found.finished = self._counted, True
            self._usage(at(event, "usage"))
        elif at(event, "type") == "error":
            self.found.failed = True
        elif isinstance(delta := at(event, "delta"), str):
            self.found.text_bytes += len(delta.encode("utf-8", "replace"))
        return False

    def whole(self, body: bytes) -> None:
        if answers.is_refusal(body):
            self.found.failed = True
            return
        # Text and subtitles say nothing of their cost.
        self.found.usage, self.found.finished = self._counted, True
        answer = answers.read(body)
        self._heard(at(answer, "duration"))
        self._usage(at(answer, "usage"))

    def _usage(self, usage: Any) -> None:
        """Tokens where the model counts them, else the seconds that the provider heard."""
        if not isinstance(usage, dict):
            return
        if self._heard(usage.get("seconds")):
            return
        if (reading := openai_usage.read(usage, None)) is not None:
            self.found.usage = reading.usage

    def _heard(self, seconds: Any) -> bool:
        """Whether that says how long the recording lasted, which then counts."""
        said = type(seconds) in (int, float) and 0 < seconds < 2**31
        if said:
            self.found.usage = Usage(units=math.ceil(round(seconds * 1000, 3)), unit=UNIT)
        return said
