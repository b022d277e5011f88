"""A copy of the answer for the meter. Its bytes go on unchanged, but for the usage chunk that we asked for."""

import zlib

from metering_proxy.wires.events import Splitter
from metering_proxy.wires.wire import Reader

_MOST_WHOLE = 32 * 1024 * 1024
_READABLE = ("gzip", "x-gzip", "deflate")
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32


class Tee:
    """Feeds on the answer's bytes, gives those to pass on, and lets the wire's reader see what is in them.

    `unread`: from some point on, the answer was passed on without being read.
    """

    def __init__(self, reader: Reader, *, events: bool, encoding: str, strip: bool) -> None:
        self._reader, self._events = reader, events
        packed = encoding not in ("", "identity")
        self._blind = packed and encoding not in _READABLE
        self._unpack = zlib.decompressobj(_GZIP_OR_ZLIB) if packed else None
        self._strip = strip and events and not packed
        self._splitter = Splitter()
        self._whole = bytearray()
        self._dropped_last = False

    @property
    def unread(self) -> bool:
        """See the class."""
        return self._blind or self._splitter.gave_up

    def feed(self, chunk: bytes) -> bytes:
        """What to pass on of `chunk` and of what was held back before it."""
        if self._blind:
            return chunk
        plain = self._plain(chunk)
        if not self._events:
            self._gather(plain)
            return chunk
        kept = self._read(plain)
        return kept if self._strip else chunk

    def cut(self) -> bytes:
        """What is still held back of an answer that broke off."""
        return self._splitter.rest() if self._strip else b""

    def end(self) -> bytes:
        """What is still held back at the end, after the reader has seen it."""
        if self._blind:
            return b""
        if not self._events:
            self._reader.whole(bytes(self._whole))
            self._whole.clear()
            return b""
        raw, data = self._splitter.last()
        kept = raw
        if data is not None and self._reader.event(data):
            kept = b""
        return kept if self._strip else b""

    def _read(self, plain: bytes) -> bytes:
        parts: list[bytes] = []
        for raw, data in self._splitter.feed(plain):
            if data is not None:
                self._dropped_last = self._reader.event(data)
            elif raw != b"\n":  # an LF alone belongs to the event before it
                self._dropped_last = False
            if not self._dropped_last:
                parts.append(raw)
        return b"".join(parts)

    def _gather(self, plain: bytes) -> None:
        self._whole += plain
        if len(self._whole) > _MOST_WHOLE:
            self._whole.clear()
            self._blind = True

    def _plain(self, chunk: bytes) -> bytes:
        """The bytes unpacked, at most so many at once: a packed answer may be a trap."""
        if self._unpack is None:
            return chunk
        try:
            plain = self._unpack.decompress(chunk, _MOST_WHOLE)
        except zlib.error:
            self._blind = True
            return b""
        if self._unpack.unconsumed_tail:
            self._blind = True
        return plain
