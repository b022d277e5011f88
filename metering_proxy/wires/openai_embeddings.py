"""OpenAI embeddings, `POST /v1/embeddings` (https://platform.openai.com/docs/api-reference/embeddings)."""

import re
from typing import Any

from metering_proxy.wires import answers, members, numbers, openai_usage
from metering_proxy.wires.dialect import PLAIN, Dialect
from metering_proxy.wires.document import invalid, read
from metering_proxy.wires.survey import Survey
from metering_proxy.wires.wire import BARE, Ask, Envelope, Found, Reader, Shape

_MOST_INPUTS = 2_048


class OpenAiEmbeddings:
    """See wire.Wire. Nothing is generated: the input is all that costs."""

    name = "openai_embeddings"
    shape: Shape = "openai"
    operation = "embeddings"

    def read(self, body: bytes, envelope: Envelope = BARE) -> Ask:
        """See wire.Wire."""
        document = read(body)
        given = document.get("input")
        if not isinstance(given, str | list) or not given:
            raise invalid("input must be text, or a list of texts or tokens", "input")
        numbers.count(document, "dimensions", most=65_536)
        many = len(given) if isinstance(given, list) else 1
        if isinstance(given, list) and not _are_tokens(given):
            if many > _MOST_INPUTS:
                raise invalid(f"input has more than {_MOST_INPUTS} parts", "input")
            # A picture, or what is behind a URL, would be more than its bytes show.
            if not all(isinstance(item, str) or _are_tokens(item) for item in given):
                raise invalid("input must be text, or a list of texts or tokens", "input")
        return Ask(
            document=document,
            model=numbers.model(document),
            kind="embedding",
            survey=Survey(len(body) + 4 * many),
            strange=members.strange(document, self.name),
        )

    def reader(self, ask: Ask | None = None, dialect: Dialect = PLAIN) -> Reader:
        """See wire.Wire."""
        return _Reader(dialect)


def _are_tokens(given: Any) -> bool:
    return isinstance(given, list) and all(type(item) is int for item in given)


class _Reader:
    telling: re.Pattern[bytes] | None = None

    def __init__(self, dialect: Dialect) -> None:
        self.found = Found()
        self._dialect = dialect

    def event(self, data: bytes) -> bool:
        return False

    def whole(self, body: bytes) -> None:
        answer = answers.read(body)
        self.found.judge(answer, "data")
        if answer is None:
            return
        self.found.finished = "data" in answer
        if isinstance(answer.get("model"), str):
            self.found.model = answer["model"]
        usage = openai_usage.find(answer, self._dialect)
        reading = openai_usage.read(usage, None, self._dialect, generates=False) if usage else None
        if usage and reading:
            self.found.usage = reading.usage
            self.found.stated = openai_usage.stated_cost(usage, self._dialect)
