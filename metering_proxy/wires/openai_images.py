"""OpenAI images, `POST /v1/images/generations` (https://platform.openai.com/docs/api-reference/images).

Some models are priced by the image, of a quality and a size, others by tokens, which the answer counts.
"""

import re
from typing import Any

from metering_proxy.pricing import Usage
from metering_proxy.wires import answers, members, numbers, openai_usage
from metering_proxy.wires.dialect import PLAIN, Dialect, at
from metering_proxy.wires.document import invalid, read
from metering_proxy.wires.survey import Survey
from metering_proxy.wires.wire import BARE, Ask, Envelope, Found, Reader, Shape

UNIT = "image"
_MOST_IMAGES = 10
_MOST_PARTIAL = 3
_PARTIAL_TOKENS = 100
_DONE = "image_generation.completed"


class OpenAiImages:
    """See wire.Wire."""

    name = "openai_images"
    shape: Shape = "openai"
    operation = "image_generation"

    def read(self, body: bytes, envelope: Envelope = BARE) -> Ask:
        """See wire.Wire."""
        document = read(body)
        if not isinstance(document.get("prompt"), str):
            raise invalid("prompt must be text", "prompt")
        images = numbers.count(document, "n", most=_MOST_IMAGES) or 1
        partial = numbers.count(document, "partial_images", least=0, most=_MOST_PARTIAL) or 0
        named = [numbers.text(document, name) or "" for name in ("quality", "size")]
        return Ask(
            document=document,
            model=numbers.model(document),
            kind="image",
            survey=Survey(len(body)),
            stream=numbers.flag(document, "stream"),
            choices=images,
            extra_output=partial * _PARTIAL_TOKENS,
            counted=Usage(units=images, unit=" ".join([UNIT, *filter(None, named)])),
            strange=members.strange(document, self.name),
        )

    def reader(self, ask: Ask | None = None, dialect: Dialect = PLAIN) -> Reader:
        """See wire.Wire."""
        counted = ask.counted if ask else None
        return _Reader(counted.unit if counted else UNIT)


class _Reader:
    telling: re.Pattern[bytes] | None = None

    def __init__(self, unit: str) -> None:
        self.found = Found()
        self._unit = unit

    def event(self, data: bytes) -> bool:
        event = self.found.event(data)
        if at(event, "type") == _DONE:
            self._answered(1, event)
        elif at(event, "type") == "error":
            self.found.fails(at(event, "error"))
        return False

    def whole(self, body: bytes) -> None:
        answer = answers.read(body)
        self.found.judge(answer, "data")
        data = at(answer, "data")
        if isinstance(data, list):
            self._answered(len(data), answer)

    def _answered(self, images: int, answer: object) -> None:
        """So many images more, and the tokens that the answer counts, which are all of the call's."""
        before = self.found.usage.units if self.found.usage else 0
        said = at(answer, "usage")
        usage = _read(said) if isinstance(said, dict) else Usage()
        self.found.usage = usage.with_units(before + images, self._unit)
        self.found.finished = True


def _read(said: dict[str, Any]) -> Usage:
    """What comes out is images, but for what is told to be text, as what some models think before they draw is."""
    reading = openai_usage.read(said, None)
    return reading.usage.as_images(openai_usage.text_output(said)) if reading else Usage()
