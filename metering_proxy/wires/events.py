"""An event stream as bytes: cut into events where the grammar says, each kept exactly as it came.

The grammar is WHATWG's (lines end in LF, CRLF or CR; an empty line ends an event); infra.kit.sse reads events for
their text, this keeps their bytes, so that one event can be left out and no other byte is changed.
"""

import re
from collections.abc import Iterator

# Two line ends in a row. A CR at the very end of what has come may be half of a CRLF; see `feed`.
_END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
_LINE = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
MOST_BYTES = 16 * 1024 * 1024


_BEGINNING = re.compile(rb"(?:data|event|id|retry)?:")
_LONGEST_BEGINNING = 6  # bytes


def begins_a_stream(body: bytearray) -> bool | None:
    """Whether that begins as an event stream does; None while too little has come to tell."""
    head = body[:4_096].removeprefix(_BOM).lstrip(b" \t\r\n")
    if _BEGINNING.match(head):
        return True
    return False if len(head) >= _LONGEST_BEGINNING or len(body) >= 4_096 else None


class Splitter:
    """Feeds on bytes, cut anywhere, and gives (raw bytes of an event, its data or None).

    The raw parts joined, with `rest()` at the end, are exactly what was fed. An event longer than
    `MOST_BYTES` makes it give up: from then on bytes come out as they go in, without data.
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._searched = 0
        self._after_cr = False
        self._first = True
        self.gave_up = False

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, bytes | None]]:
        """The events that `chunk` completes. An LF that belongs to the event before comes alone."""
        if self.gave_up:
            yield chunk, None
            return
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk.startswith(b"\n"):
                yield b"\n", None
                chunk = chunk[1:]
        self._held += chunk
        start = 0
        while found := _END.search(self._held, max(start, self._searched)):
            raw = bytes(self._held[start : found.end()])
            start = self._searched = found.end()
            yield raw, self._data(raw)
        if start:
            self._after_cr = start == len(self._held) and self._held.endswith(b"\r")
            del self._held[:start]
        self._searched = max(0, len(self._held) - 3)
        if len(self._held) > MOST_BYTES:
            self.gave_up = True
            yield self.rest(), None

    @property
    def plain(self) -> bool:
        """Whether lines end in LF so far, and it has not given up."""
        return not (self._after_cr or self.gave_up)

    def rest(self) -> bytes:
        """What has come of an event that is not complete; taken out."""
        left = bytes(self._held)
        self._held.clear()
        self._searched = 0
        return left

    def last(self) -> tuple[bytes, bytes | None]:
        """The same at the end of the stream, with its data: some providers end without the empty line."""
        raw = self.rest()
        return raw, self._data(raw) if raw else None

    def _data(self, raw: bytes) -> bytes | None:
        if self._first:
            self._first = False
            raw = raw.removeprefix(_BOM)
        lines = [
            line[5:].removeprefix(b" ")
            for line in _LINE.split(raw)
            if line.startswith(b"data:") or line == b"data"
        ]
        return b"\n".join(lines) if lines else None
