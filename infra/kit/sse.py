"""LIGHT. Server-sent events: writing frames, and reading them as the WHATWG grammar says.

https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = re.compile("\r\n|\n|\r")
HEARTBEAT = b": keep-alive\n\n"
CONTENT_TYPE = "text/event-stream; charset=utf-8"
HEADERS = {
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One dispatched event; `id` is the last id seen on the stream."""

    data: str
    event: str = "message"
    id: str = ""
    retry_ms: int | None = None


def frame(
    data: str, *, event_id: str | None = None, event: str | None = None, retry_ms: int | None = None
) -> bytes:
    """The bytes of one event. `data` may have several lines; ids and names may not (ValueError)."""
    if any(mark in (event_id or "") + (event or "") for mark in "\r\n"):
        raise ValueError("the id and the name of an event are one line each")
    lines = []
    if retry_ms is not None:
        lines.append(f"retry: {retry_ms}")
    if event_id is not None:
        lines.append(f"id: {event_id}")
    if event is not None:
        lines.append(f"event: {event}")
    normal = data.replace("\r\n", "\n").replace("\r", "\n")
    lines.extend(f"data: {line}" for line in normal.split("\n"))
    return ("\n".join(lines) + "\n\n").encode()


class Parser:
    """Feeds on bytes, cut anywhere, and gives the events in them.

    Takes LF, CRLF and CR, a byte order mark, comments, fields without a space after the colon,
    several data lines, and UTF-8 cut between bytes. `max_line_chars` bounds memory: a longer
    line raises ValueError.
    """

    def __init__(self, max_line_chars: int = 16 * 1024 * 1024) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending: list[str] = []
        self._pending_chars = 0
        self._max = max_line_chars
        self._first = True
        self._after_cr = False
        self._data: list[str] = []
        self._event = ""
        self._id = ""
        self._retry: int | None = None

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that `chunk` completes."""
        text = self._decoder.decode(chunk)
        if self._first and text:
            self._first = False
            text = text.removeprefix("\ufeff")
        if self._after_cr and text:
            self._after_cr = False
            text = text.removeprefix("\n")
        start = 0
        for end, width in _line_ends(text):
            self._pending.append(text[start:end])
            line = "".join(self._pending)
            self._pending.clear()
            self._pending_chars = 0
            start = end + width
            event = self._line(line)
            if event is not None:
                yield event
        if text.endswith("\r"):
            self._after_cr = True
        if start < len(text):
            self._pending.append(text[start:])
            self._pending_chars += len(text) - start
            if self._pending_chars > self._max:
                raise ValueError(
                    f"a line of the event stream is longer than {self._max} characters"
                )

    def _line(self, line: str) -> Event | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self._retry = int(value)
        return None

    def _dispatch(self) -> Event | None:
        data, event, retry = self._data, self._event, self._retry
        self._data, self._event, self._retry = [], "", None
        if not data:
            return None
        return Event("\n".join(data), event or "message", self._id, retry)


def _line_ends(text: str) -> Iterator[tuple[int, int]]:
    return ((end.start(), end.end() - end.start()) for end in _LINE_END.finditer(text))
