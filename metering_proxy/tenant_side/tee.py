"""A copy of the answer for the meter. Its bytes go on unchanged, but for the usage chunk that we asked for."""

import logging
import zlib
from collections.abc import Callable
from typing import Literal

from metering_proxy.tenant_side.skimming import Skimmer
from metering_proxy.wires.arrays import ArraySplitter
from metering_proxy.wires.events import Splitter
from metering_proxy.wires.wire import Reader

_log = logging.getLogger(__name__)
_MOST_WHOLE = 32 * 1024 * 1024
_READABLE = ("gzip", "x-gzip", "deflate")
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
Framing = Literal["events", "array", "whole", "sound", "unread"]


def framing_of(content_type: str, *, array: bool) -> Framing:
    """How a good answer is cut: into events, elements of one JSON array, or not at all; sound is not kept."""
    if content_type.startswith("text/event-stream"):
        return "events"
    if content_type.startswith(("audio/", "application/octet-stream")):
        return "sound"
    return "array" if array else "whole"


class Tee:
    """Feeds on the answer's bytes, gives those to pass on, and lets the wire's reader see what is in them.

    `unread`: from some point on, the answer was passed on without being read, though it should have been.
    """

    def __init__(self, reader: Reader, *, framing: Framing, encoding: str, strip: bool) -> None:
        self._reader, self._framing = reader, framing
        packed = encoding not in ("", "identity")
        self._blind = packed and encoding not in _READABLE
        self._unpack = zlib.decompressobj(_GZIP_OR_ZLIB) if packed else None
        self._strip = strip and framing == "events" and not packed
        self._splitter = ArraySplitter() if framing == "array" else Splitter()
        self._skimmer: Skimmer | None = None
        self._skims = framing == "events" and reader.telling is not None
        self._whole = bytearray()
        self._dropped_last = False

    @property
    def unread(self) -> bool:
        """See the class."""
        return self._framing != "unread" and (self._blind or self._splitter.gave_up)

    def feed(self, chunk: bytes) -> bytes:
        """What to pass on of `chunk` and of what was held back before it."""
        if self._blind or self._framing in ("sound", "unread"):
            return chunk
        plain = self._plain(chunk)
        if self._framing == "whole":
            self._gather(plain)
            return chunk
        kept = self._read(plain)
        return kept if self._strip else chunk

    def cut(self) -> bytes:
        """What is still held back of an answer that broke off."""
        return self._rest() if self._strip else b""

    def seen(self) -> int:
        """About how many output tokens were seen so far."""
        self._catch_up()
        return self._reader.found.output_estimate

    def conclude(self) -> None:
        """Nothing more will be fed: what was put by is read, where the answer has not said what it used."""
        found = self._reader.found
        if found.usage is None or not found.finished:
            self._catch_up()

    def end(self) -> bytes:
        """What is still held back at the end, after the reader has seen it."""
        if self._blind or self._framing == "unread":
            return b""
        if self._framing in ("whole", "sound"):
            self._show(self._reader.whole, bytes(self._whole))
            self._whole.clear()
            return b""
        if self._skimmer is not None:
            self._exact(self._rest())
        raw, data = self._splitter.last()
        kept = raw
        if data is not None and self._look(data):
            kept = b""
        return kept if self._strip else b""

    def _read(self, plain: bytes) -> bytes:
        parts: list[bytes] = []
        while plain and self._skims and self._skimmer is None:
            end = plain.find(b"\n\n") + 2
            event, plain = (plain[:end], plain[end:]) if end > 1 else (plain, b"")
            parts.append(self._exact(event))
            if self._reader.found.text_bytes:
                self._begin_to_skim()
        if plain:
            parts.append(
                self._exact(plain) if self._skimmer is None else self._skim(self._skimmer, plain)
            )
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _skim(self, skimmer: Skimmer, plain: bytes) -> bytes:
        kept = skimmer.feed(plain)
        if skimmer.over:
            skimmer.catch_up()
            self._skimmer, self._skims = None, False
            kept += self._exact(skimmer.rest())
        return kept

    def _begin_to_skim(self) -> None:
        """The answer has begun to speak, with what it says of its model behind it."""
        telling = self._reader.telling
        if isinstance(self._splitter, Splitter) and self._splitter.plain and telling is not None:
            self._skimmer = Skimmer(self._splitter, telling, self._look)
        else:
            self._skims = False

    def _look(self, data: bytes) -> bool | None:
        return self._show(self._reader.event, data)

    def _catch_up(self) -> None:
        """Reads what was put by. It came before whatever was read since, so an end that was seen stands."""
        if self._skimmer is not None:
            found = self._reader.found
            finished = found.finished
            self._skimmer.catch_up()
            found.finished = found.finished or finished

    def _rest(self) -> bytes:
        held = self._skimmer.rest() if self._skimmer is not None else b""
        return held + self._splitter.rest()

    def _exact(self, plain: bytes) -> bytes:
        parts: list[bytes] = []
        for raw, data in self._splitter.feed(plain):
            if data is not None:
                self._dropped_last = bool(self._look(data))
            elif raw != b"\n":  # an LF alone belongs to the event before it
                self._dropped_last = False
            if not self._dropped_last:
                parts.append(raw)
        return b"".join(parts)

    def _show(self, look: Callable[[bytes], bool | None], data: bytes) -> bool | None:
        """Lets the reader look. A reader that fails is our mistake, not one that its caller should notice."""
        if self._blind:
            return False
        try:
            return look(data)
        except Exception:
            _log.exception("an answer could not be read")
            self._blind = True
            return False

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
