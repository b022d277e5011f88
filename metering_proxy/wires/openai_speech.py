"""OpenAI speech, by the character (https://platform.openai.com/docs/api-reference/audio).

Where it comes as events, the last one counts tokens besides.
"""

import re
from typing import Any

from metering_proxy.pricing import Usage
from metering_proxy.wires import answers, members, numbers, openai_usage
from metering_proxy.wires.dialect import PLAIN, Dialect, at
from metering_proxy.wires.document import invalid, read
from metering_proxy.wires.survey import Survey
from metering_proxy.wires.wire import BARE, Ask, Envelope, Found, Reader, Shape

UNIT = "character"
_MOST_CHARACTERS = 4_096


class OpenAiSpeech:
    """See wire.Wire. Sound says nothing of its cost: the request does."""

    name = "openai_speech"
    shape: Shape = "openai"
    operation = "speech"

    def read(self, body: bytes, envelope: Envelope = BARE) -> Ask:
        """See wire.Wire."""
        document = read(body)
        given = document.get("input")
        if not isinstance(given, str) or not 1 <= len(given) <= _MOST_CHARACTERS:
            raise invalid(f"input must be text of 1 to {_MOST_CHARACTERS} characters", "input")
        return Ask(
            document=document,
            model=numbers.model(document),
            kind="speech",
            survey=Survey(0),
            counted=Usage(units=len(given), unit=UNIT),
            strange=members.strange(document, self.name),
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
        if at(event, "type") == "speech.audio.done":
            self._done(at(event, "usage"))
        elif at(event, "type") == "error":
            self.found.fails(at(event, "error"))
        return False

    def _done(self, usage: Any) -> None:
        counted = self._counted or Usage()
        reading = openai_usage.read(usage, None) if isinstance(usage, dict) else None
        told = reading.usage.as_sound() if reading else Usage()
        self.found.usage, self.found.finished = told.with_units(counted.units, counted.unit), True

    def whole(self, body: bytes) -> None:
        if answers.is_refusal(body):
            self.found.failed = True
            return
        self.found.usage, self.found.finished = self._counted, True
