"""A JSON array that comes in pieces, cut into its elements; Gemini streams so where nobody asks for events."""

import re
from collections.abc import Iterator

from metering_proxy.wires.events import MOST_BYTES

_MARK = re.compile(rb'["{}\[\]\\,]')


class ArraySplitter:
    """Feeds on bytes, cut anywhere, and gives (raw bytes, an element or None), like events.Splitter.

    The raw parts joined, with `rest()` at the end, are exactly what was fed.
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._at = 0  # where to look on
        self._depth = 0
        self._in_text = False
        self.gave_up = False

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, bytes | None]]:
        """The elements that `chunk` completes."""
        if self.gave_up:
            yield chunk, None
            return
        self._held += chunk
        while (end := self._element_end()) is not None:
            raw = bytes(self._held[:end])
            del self._held[:end]
            self._at = 0
            yield raw, _element(raw)
        if len(self._held) > MOST_BYTES:
            self.gave_up = True
            yield self.rest(), None

    def rest(self) -> bytes:
        """What has come of an element that is not complete; taken out."""
        left = bytes(self._held)
        self._held.clear()
        self._at = 0
        return left

    def last(self) -> tuple[bytes, bytes | None]:
        """The same at the end of the stream."""
        return self.rest(), None

    def _element_end(self) -> int | None:
        """Where the next element that is an object ends; None while it has not."""
        while found := _MARK.search(self._held, self._at):
            mark, self._at = found.group(), found.end()
            if self._in_text:
                if mark == b"\\":
                    if self._at == len(self._held):
                        self._at -= 1  # what it escapes is still to come
                        return None
                    self._at += 1
                self._in_text = mark != b'"'
            elif mark == b'"':
                self._in_text = True
            elif mark in b"{[":
                self._depth += 1
            elif mark in b"}]":
                self._depth -= 1
                if mark == b"}" and self._depth == 1:
                    return self._at
        self._at = len(self._held)
        return None


def _element(raw: bytes) -> bytes:
    """The element without the bracket or comma before it."""
    return raw[raw.index(b"{") :]
