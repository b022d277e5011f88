"""OpenAI speech, by the character (https://platform.openai.com/docs/api-reference/audio)."""

import re

from metering_proxy.pricing import Usage
from metering_proxy.wires import answers, members, numbers
from metering_proxy.wires.dialect import PLAIN, Dialect
from metering_proxy.wires.document import invalid, read
from metering_proxy.wires.survey import Survey
from metering_proxy.wires.wire import PLAINLY, Ask, Found, Outside, Reader, Shape

UNIT = "character"
_MOST_CHARACTERS = 4_096


class OpenAiSpeech:
    """See wire.Wire. The answer is sound and says nothing of its cost: the request does."""

    name = "openai_speech"
    shape: Shape = "openai"
    operation = "speech"

    def read(self, body: bytes, outside: Outside = PLAINLY) -> Ask:
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
        return False

    def whole(self, body: bytes) -> None:
        if answers.is_refusal(body):
            self.found.failed = True
            return
        self.found.usage, self.found.finished = self._counted, True
