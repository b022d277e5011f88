"""What every wire gives: a request read (`Ask`), edited for its provider, and a reader for its answer."""

from dataclasses import dataclass, field
from typing import Literal, Protocol

from metering_proxy.pricing import Reach, Usage
from metering_proxy.wires.document import Document, Edit, spliced
from metering_proxy.wires.survey import Survey

Shape = Literal["openai", "anthropic"]
Kind = Literal["chat", "embedding"]


@dataclass(frozen=True, slots=True)
class Ask:
    """A request as far as the meter must understand it.

    `limit`: the token limit asked for and `limit_field` its member; None where the request has none.
    `floor`: the least limit that is worth a call. `strip_usage`: the stream's usage chunk is ours, not
    the caller's. `extra_output`: output tokens beyond what `limit` bounds.
    """

    document: Document
    model: str
    kind: Kind
    survey: Survey
    stream: bool = False
    limit: int | None = None
    limit_field: str | None = None
    floor: int = 0
    choices: int = 1
    extra_output: int = 0
    tier: str | None = None
    strip_usage: bool = False
    audio_output: bool = False
    edits: tuple[Edit, ...] = field(default=())

    def reach(self, input_tokens: int, *, automatic_cache: bool) -> Reach:
        """What this request can make happen; `automatic_cache`: whether the provider writes a cache unasked."""
        return Reach(
            input_tokens=input_tokens,
            writes=self.survey.cached or automatic_cache,
            writes_1h=self.survey.cached_1h,
            audio=self.survey.audio or self.audio_output,
            choices=self.choices,
            extra_output=self.extra_output,
            tier=self.tier,
        )

    def body(self, model: str, limit: int | None, limit_field: str) -> bytes:
        """The bytes for the provider: its own model id, the token limit if given, and the wire's edits."""
        edits = [*self.edits, self.document.put("model", model)]
        if limit is not None:
            edits.append(self.document.put(limit_field, limit))
        return spliced(self.document, edits)


@dataclass(slots=True)
class Found:
    """What an answer said of itself so far.

    `usage` None: nothing was said of it. `text_bytes`: UTF-8 bytes of generated text. `finished`: the
    answer came to its end, so its usage is final. `failed`: it said that it went wrong.
    """

    usage: Usage | None = None
    model: str | None = None
    text_bytes: int = 0
    finished: bool = False
    failed: bool = False

    @property
    def output_estimate(self) -> int:
        """About how many output tokens were seen."""
        return -(-self.text_bytes // 4)


class Reader(Protocol):
    """Reads a copy of an answer. Never raises for what an answer contains."""

    found: Found

    def event(self, data: bytes) -> bool:
        """One event of a stream; True where it is nothing but the usage that we asked for."""
        ...

    def whole(self, body: bytes) -> None:
        """An answer that is not a stream."""
        ...


class Wire(Protocol):
    """One wire of one operation."""

    name: str
    shape: Shape
    path: str
    """Where callers send it."""
    operation: str
    """`gen_ai.operation.name`."""

    def read(self, body: bytes) -> Ask:
        """The request in `body`. Raises `invalid`."""
        ...

    def reader(self) -> Reader:
        """A reader for one answer."""
        ...
