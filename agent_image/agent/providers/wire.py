"""What both wire formats have in common: the request before it has a format, the answer after it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from agent.text import well_formed
from infra.kit.sse import Event


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is told of it."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asking:
    """A call in the history: the model's id for it, and its arguments."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to the call with that id."""

    id: str
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One message. A user's has text or results, never both; an assistant's has text, calls or both."""

    role: str
    text: str = ""
    calls: tuple[Asking, ...] = ()
    results: tuple[Result, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """Everything that one model call says, without a wire format.

    `may_call` False: the tools are listed, since the history speaks of them and the prefix stays
    the same, but this answer must be text.
    """

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    may_call: bool = True
    max_tokens: int = 4096
    temperature: float | None = None
    frequency_penalty: float | None = None


@dataclass(slots=True)
class Wanted:
    """A call as it arrived: `arguments` is the text that the model wrote."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def parsed(self) -> tuple[dict[str, Any], str | None]:
        """The arguments and None, or nothing and what is wrong with them."""
        if not self.arguments.strip():
            return {}, None
        try:
            found = orjson.loads(self.arguments)
        except orjson.JSONDecodeError as error:
            return (
                {},
                f"the arguments are not valid JSON ({error}): {well_formed(self.arguments)[:200]}",
            )
        if not isinstance(found, dict):
            return {}, "the arguments must be a JSON object"
        return found, None


@dataclass(slots=True)
class Reply:
    """A whole answer. `stop`: `end`, `calls`, `length`, `refusal` or `other`. `model`: whose, where it is told."""

    text: str = ""
    calls: list[Wanted] = field(default_factory=list)
    stop: str = "end"
    clamped_to: int | None = None
    model: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing, asks for nothing and does not decline."""
        return not self.text.strip() and not self.calls and self.stop != "refusal"


class Assembler(Protocol):
    """Puts one streamed answer together."""

    def feed(self, event: Event) -> Iterator[str]:
        """The text that this event brings. Raises ModelError for an error inside the stream."""
        ...

    def whole(self, body: bytes) -> Iterator[str]:
        """The text of an answer that came unstreamed, as JSON."""
        ...

    def reply(self) -> Reply:
        """The answer. Raises ModelError `bad_gateway` where the stream was cut before its end."""
        ...


class Wire(Protocol):
    """A wire format."""

    path: str

    def headers(self, key: str) -> dict[str, str]:
        """Headers with the key."""
        ...

    def body(self, prompt: Prompt, model: str) -> bytes:
        """The request's JSON; asks for a stream."""
        ...

    def assembler(self) -> Assembler:
        """A fresh assembler for the answer."""
        ...


class Runes:
    """Joins surrogate halves that a converter has cut apart, and lets no lone one through."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        """`text` after what was held back; a high half at its end is held back in turn."""
        text = self._half + text
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        return well_formed(text.removesuffix(self._half)).replace("\0", "")

    def rest(self) -> str:
        """What is left at the end."""
        half, self._half = self._half, ""
        return well_formed(half)
