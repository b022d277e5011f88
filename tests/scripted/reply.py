"""What a step answers, in words of neither wire; `openai_wire` and `anthropic_wire` say it in theirs.

A reply is frozen; each misbehaviour is a method that returns a reply with that one added.
"""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

Stop = Literal["end", "tools", "length", "refusal"]


class Gate:
    """A place in an answer where the provider waits for the test: never a sleep.

    `await gate.reached()` returns once everything before it is on the wire, `gate.open()` lets the
    rest go. A client that leaves while the gate is shut is noticed at once.
    """

    def __init__(self) -> None:
        self._reached = asyncio.Event()
        self._open = asyncio.Event()

    async def reached(self, timeout_s: float = 20.0) -> None:
        """Returns when an answer waits here; TimeoutError after `timeout_s`."""
        async with asyncio.timeout(timeout_s):
            await self._reached.wait()

    def open(self) -> None:
        """Lets every answer that waits or will wait here go on."""
        self._open.set()

    async def pass_through(self) -> None:
        """The provider's side."""
        self._reached.set()
        await self._open.wait()


@dataclass(frozen=True, slots=True)
class Delay:
    """A real delay of `seconds`: a misbehaviour (a slow provider), not a way to wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. `arguments` as a string is sent as it is, well-formed or not; `index` forces the
    stream index (two calls that share one); `fragments` is into how many pieces arguments are cut."""

    name: str
    arguments: dict[str, Any] | str
    id: str | None = None
    index: int | None = None
    fragments: int = 2


@dataclass(frozen=True, slots=True)
class StreamError:
    """An error event in the stream, after the 200; the stream ends there without its usual end."""

    type: str = "overloaded_error"
    message: str = "Overloaded"


Part = str | Call | Gate | Delay | StreamError


@dataclass(frozen=True, slots=True)
class Usage:
    """What the provider says it used. `input` excludes what was read from or written to a cache."""

    input: int
    output: int
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    reasoning: int = 0

    @property
    def total_input(self) -> int:
        """Input with everything cached."""
        return self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer and its manners. Made by the functions below."""

    parts: tuple[Part, ...] = ()
    stop: Stop | None = None
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | dict[str, Any] | None = None
    usage: Usage | None = None
    tells_usage: bool = True
    raw_usage: dict[str, Any] | None = None
    usage_in_every_chunk: bool = False
    overflow_tokens: int | None = None
    drop_after_bytes: int | None = None
    rune_cuts: bool = False
    every_byte: bool = False
    line_end: str = "\n"
    comments: bool = False
    no_end: bool = False
    recorded: bytes | None = None
    cut_at: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """All of its text."""
        return "".join(part for part in self.parts if isinstance(part, str))

    @property
    def tool_calls(self) -> list[Call]:
        """Its tool calls, in order."""
        return [part for part in self.parts if isinstance(part, Call)]

    @property
    def ending(self) -> Stop:
        """Why it ends, as a provider would say."""
        return self.stop or ("tools" if self.tool_calls else "end")

    def using(self, input: int, output: int, **more: int) -> Self:
        """With exactly this usage, instead of counted words."""
        return replace(self, usage=Usage(input, output, **more))

    def without_usage(self) -> Self:
        """As servers do that never tell."""
        return replace(self, tells_usage=False)

    def with_raw_usage(self, usage: dict[str, Any]) -> Self:
        """With this object in place of usage, however wrong."""
        return replace(self, raw_usage=usage)

    def with_usage_in_every_chunk(self) -> Self:
        """Cumulative usage on each chunk of a stream (who sums it counts many times)."""
        return replace(self, usage_in_every_chunk=True)

    def overflow_above(self, tokens: int) -> Self:
        """Refuses with the wire's context-length error if the counted input is more than `tokens`."""
        return replace(self, overflow_tokens=tokens)

    def dropped_after(self, body_bytes: int) -> Self:
        """The connection breaks after so many bytes of the body."""
        return replace(self, drop_after_bytes=body_bytes)

    def cut_after(self, body_bytes: int) -> Self:
        """The body arrives in two pieces, so many bytes in the first."""
        return replace(self, cut_at=body_bytes)

    def cutting_runes(self) -> Self:
        """Every character of several bytes arrives in two pieces."""
        return replace(self, rune_cuts=True)

    def byte_by_byte(self) -> Self:
        """Every byte of the body is a piece of its own."""
        return replace(self, every_byte=True)

    def with_crlf(self) -> Self:
        """Lines of the stream end in CRLF."""
        return replace(self, line_end="\r\n")

    def with_comments(self) -> Self:
        """Comment lines keep the stream alive before each event."""
        return replace(self, comments=True)

    def without_end(self) -> Self:
        """Closes cleanly without the wire's last event (`[DONE]`, `message_stop`)."""
        return replace(self, no_end=True)

    def stopping(self, stop: Stop) -> Self:
        """Ends for this reason."""
        return replace(self, stop=stop)

    def with_headers(self, **headers: str) -> Self:
        """With these headers; underscores stand for hyphens."""
        named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        return replace(self, headers=(*self.headers, *named))


def text(*parts: Part) -> Reply:
    """An answer of text, one chunk a string; gates and delays between them. No part: an empty message."""
    return Reply(parts=parts)


def recorded(body: bytes, content_type: str = "text/event-stream") -> Reply:
    """A stream of exactly these bytes, whatever was asked."""
    return Reply(recorded=body).with_headers(content_type=content_type)


def call(name: str, **arguments: Any) -> Call:
    """One well-formed tool call."""
    return Call(name, arguments)


def calls(*parts: Part) -> Reply:
    """An answer that asks for tools (text before them is allowed)."""
    return Reply(parts=parts)


def refusal(*parts: Part) -> Reply:
    """The model declines: Anthropic's `refusal`, OpenAI's `content_filter`."""
    return Reply(parts=parts, stop="refusal")


def error(
    status: int, message: str = "scripted failure", *, kind: str | None = None, **headers: str
) -> Reply:
    """An error of the wire asked, or of `kind`; headers with underscores for hyphens (`retry_after`)."""
    return Reply(status=status, extra={"message": message, "kind": kind}).with_headers(**headers)
