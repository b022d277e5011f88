"""What every wire gives: a request read (`Ask`), edited for its provider, and a reader for its answer."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, Protocol

from infra.kit.value import value
from metering_proxy.bounds import Reach
from metering_proxy.pricing import Usage
from metering_proxy.wires import answers
from metering_proxy.wires.dialect import Dialect
from metering_proxy.wires.document import Edit
from metering_proxy.wires.survey import Survey

Shape = Literal["openai", "anthropic", "gemini"]
Kind = Literal["chat", "embedding", "image", "speech", "transcription"]


class Editable(Protocol):
    """A body that is edited in place."""

    @property
    def content_type(self) -> str:
        """What it was read as."""
        ...

    def put_at(self, place: str, value: object) -> Edit:
        """The edit that gives the member at a place this value."""
        ...

    def edited(self, edits: Sequence[Edit]) -> bytes:
        """The whole with the edits made, every other byte as it was."""
        ...


@value
class Envelope:
    """What a request says around its body: query, content type, and the model where its path names one."""

    model: str = ""
    query: str = ""
    content_type: str = ""


BARE = Envelope()


class _Gone:
    """What is left of a body that was let go."""

    content_type = ""

    def put_at(self, place: str, value: object) -> Edit:
        raise RuntimeError("the body was let go: nothing may be sent again")

    def edited(self, edits: Sequence[Edit]) -> bytes:
        raise RuntimeError("the body was let go: nothing may be sent again")


_GONE = _Gone()


@dataclass(slots=True)
class Ask:
    """A request as far as the meter must understand it. Nothing of it changes, but that its document goes.

    `limit`: the token limit asked for and `limit_at` its place; None where the request has none.
    `floor`: the least limit that is worth a call. `usage_edits`: what asks for the stream's usage where the
    caller did not. `extra_output`: output tokens beyond what `limit` bounds. `searches`: how often the provider
    may search, and read the input again; `open_searches`: it may do so more often, and nobody says how often.
    `counted`: what is counted in the request itself, by unit.
    `free`: it costs nothing and counts as a request. `array`: its stream is one JSON array.
    `model_in_body` false: the path names it. `query`: what of the query goes on to the provider.
    `strange`: members that its wire does not know (members.py), which only some kinds of providers may be sent.
    """

    document: Editable
    model: str
    kind: Kind
    survey: Survey
    stream: bool = False
    limit: int | None = None
    limit_at: str | None = None
    floor: int = 0
    choices: int = 1
    extra_output: int = 0
    tier: str | None = None
    usage_edits: tuple[Edit, ...] = ()
    audio_output: bool = False
    searches: int = 0
    open_searches: bool = False
    counted: Usage | None = None
    free: bool = False
    array: bool = False
    model_in_body: bool = True
    query: str = ""
    strange: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = field(default=())

    def reach(self, input_tokens: int, *, automatic_cache: bool) -> Reach:
        """What this request can make happen; `automatic_cache`: whether the provider writes a cache unasked."""
        counted = self.counted or Usage()
        return Reach(
            input_tokens=input_tokens * (1 + self.searches),
            writes=self.survey.cached or automatic_cache,
            writes_1h=self.survey.cached_1h,
            audio=self.survey.audio or self.survey.opaque or self.audio_output,
            choices=self.choices,
            extra_output=self.extra_output,
            tier=self.tier,
            images=self.survey.images > 0 or self.survey.opaque,
            searches=self.searches,
            open_searches=self.open_searches,
            units=counted.units,
            unit=counted.unit,
        )

    def let_document_go(self) -> None:
        """The request will not be sent again. What is known of it stays."""
        self.document = _GONE

    def body(self, model: str, limits: Sequence[tuple[str, int]], *, ask_usage: bool) -> bytes:
        """The bytes for the provider: its own model id, token limits at their places, and the wire's edits."""
        edits = [*self.edits, *(self.usage_edits if ask_usage else ())]
        if self.model_in_body:
            edits.append(self.document.put_at("model", model))
        edits += [self.document.put_at(place, limit) for place, limit in limits]
        return self.document.edited(edits)


@dataclass(slots=True)
class Found:
    """What an answer said of itself so far.

    `usage` None: nothing was said of it. `text_bytes`: UTF-8 bytes of generated text. `unread_bytes`: of an
    answer that could not be read, those passed on. `strange_bytes`: of events that are no JSON, which are text
    where there is no other. `searches`: made so far. `finished`: the answer came to its end, so its usage is
    final. `failed`: it said that it went wrong, and `complaint` by which word. `stated`: the cost in nano-USD that
    the provider states. `doubt`: what its numbers leave open. `tier`: as served, by a header or by what came till
    now.
    """

    usage: Usage | None = None
    model: str | None = None
    tier: str | None = None
    text_bytes: int = 0
    unread_bytes: int = 0
    strange_bytes: int = 0
    searches: int = 0
    finished: bool = False
    failed: bool = False
    complaint: str | None = None
    stated: Fraction | None = None
    doubt: str | None = None

    def event(self, data: bytes) -> dict[str, Any] | None:
        """The object that an event's data is; None where it is none, and noted unless it keeps a line alive."""
        event = answers.read(data)
        if event is None and data != b"[DONE]" and not data.startswith(b":"):
            self.strange_bytes += len(data)
        return event

    def fails(self, error: Any) -> None:
        """It says that it went wrong; `error` is what stands there about it."""
        self.failed = True
        self.complaint = answers.word(error) or self.complaint

    def judge(self, answer: dict[str, Any] | None, *parts: str) -> None:
        """It is whole, and is an answer where it has one of `parts` and no error (see `answers.failed`)."""
        self.failed = answers.failed(answer, *parts)
        self.complaint = answers.word(answer.get("error")) if answer else None

    @property
    def reported_usage(self) -> Usage | None:
        """The usage, where the answer reported all of it; None where its input was never filled in.

        A provider that says zero means it, but output of no input there is not.
        """
        usage = self.usage
        if usage is None or not self.finished:
            return None
        return None if usage.generated and not usage.total_input else usage

    @property
    def output_estimate(self) -> int:
        """About how many output tokens were passed on."""
        return -(-self.passed_bytes // 4)

    @property
    def passed_bytes(self) -> int:
        """Bytes from which output is estimated: of the text that was read, or of what could not be."""
        return max(self.text_bytes, self.unread_bytes) or self.strange_bytes


class Reader(Protocol):
    """Reads a copy of an answer. Never raises for what an answer contains.

    `telling`: found in the bytes of every event, after the first with text, that changes more of `found` than
    `text_bytes`; the others may be read late, or not at all. None: each is read as it comes.
    """

    found: Found
    telling: re.Pattern[bytes] | None

    def event(self, data: bytes) -> bool:
        """One event of a stream; True where it is nothing but the usage that we asked for."""
        ...

    def whole(self, body: bytes) -> None:
        """An answer that is not a stream. One that is none at all, whatever its status says, has failed."""
        ...


class Wire(Protocol):
    """One wire of one operation. Which paths lead to it stands in paths.py."""

    name: str
    shape: Shape
    operation: str
    """`gen_ai.operation.name`."""

    def read(self, body: bytes, envelope: Envelope = ...) -> Ask:
        """The request in `body`. Raises `invalid`."""
        ...

    def reader(self, ask: Ask | None = None, dialect: Dialect = ...) -> Reader:
        """A reader for one answer to `ask`, by a provider of that dialect."""
        ...
