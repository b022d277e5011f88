"""A copy of the answer for the meter. Its bytes go on unchanged, but for the usage chunk that we asked for."""

import logging
from collections.abc import Callable
from typing import Literal

import orjson

from metering_proxy.tenant_side.redaction import Redactor
from metering_proxy.tenant_side.skimming import Skimmer
from metering_proxy.tenant_side.unpacking import Unpacker
from metering_proxy.wires.arrays import ArraySplitter
from metering_proxy.wires.events import Splitter, begins_a_stream
from metering_proxy.wires.wire import Reader

_log = logging.getLogger(__name__)
_MOST_WHOLE = 32 * 1024 * 1024
Framing = Literal["events", "array", "whole", "sound", "unread"]


def framing_of(content_type: str, *, array: bool, sound: bool = False) -> Framing:
    """How a good answer is cut: into events, elements of one JSON array, or not at all; sound is not kept.

    `array`, `sound`: what was asked for.
    """
    if content_type.startswith("text/event-stream"):
        return "events"
    if sound and content_type.startswith(("audio/", "application/octet-stream")):
        return "sound"
    return "array" if array else "whole"


class Tee:
    """Feeds on the answer's bytes, gives those to pass on, and lets the wire's reader see what is in them.

    `sniffs`: how the answer begins tells how it is cut, whatever it calls itself and whatever was asked for.
    `secret`: what must not stand in a refusal, which is passed on without being read.
    `unread`: from some point on, the answer was passed on without being read, though it should have been.
    """

    def __init__(
        self,
        reader: Reader,
        *,
        framing: Framing,
        encoding: str,
        strip: bool,
        sniffs: bool = False,
        secret: str | None = None,
    ) -> None:
        self._reader, self._framing = reader, framing
        self._unpacker = Unpacker(encoding, _MOST_WHOLE)
        self._blind = not self._unpacker.knows
        self._strip = strip and framing == "events" and self._unpacker.plain
        self._unsure = sniffs and framing in ("events", "whole", "array") and not self._strip
        self._splitter = ArraySplitter() if framing == "array" else Splitter()
        self._skimmer: Skimmer | None = None
        self._skims = framing == "events" and reader.telling is not None
        self._whole = bytearray()
        self._redactor = Redactor(secret)
        self._fed_bytes = 0
        self._dropped_last = False
        self._saw_data = False

    @property
    def unread(self) -> bool:
        """See the class."""
        broken = self._blind or self._unpacker.broken or self._splitter.gave_up
        return self._framing != "unread" and broken

    def feed(self, chunk: bytes) -> bytes:
        """What to pass on of `chunk` and of what was held back before it."""
        self._fed_bytes += len(chunk)
        if self._framing == "unread":
            return self._redactor.feed(chunk)
        if self._blind or self._framing == "sound":
            return chunk
        plain = chunk if self._unpacker.plain else self._unpacker.feed(chunk)
        if self._unsure:
            plain = self._begin(plain)
        if self._framing == "whole":
            self._gather(plain)
            return chunk
        kept = self._read(plain) if self._skimmer is None else self._skim(self._skimmer, plain)
        return kept if self._strip else chunk

    def cut(self) -> bytes:
        """What is still held back of an answer that broke off."""
        return self._rest() if self._strip else self._redactor.rest()

    def seen(self) -> int:
        """About how many output tokens were passed on so far."""
        self._catch_up()
        self._note_unread()
        return self._reader.found.output_estimate

    def conclude(self) -> None:
        """Nothing more will be fed: what was put by is read, where the answer has not said what it used
        and that it is over.

        An answer that is cut behind all of its JSON has said all that there is.
        """
        if self._reader.found.reported_usage is None or not self._reader.found.finished:
            self._catch_up()
        if self._framing == "whole" and self._whole and _is_json(self._whole):
            self._show(self._reader.whole, bytes(self._whole))
            self._whole.clear()
        self._note_unread()

    def end(self) -> bytes:
        """What is still held back at the end, after the reader has seen it. To be called before `conclude`."""
        if self._framing == "unread":
            return self._redactor.rest()
        rest = b"" if self._blind or not self._fed_bytes else self._end()
        found = self._reader.found
        silent = self._framing in ("events", "array") and not self._saw_data and not self.unread
        found.failed = found.failed or silent or not self._fed_bytes
        return rest

    def _end(self) -> bytes:
        self._unpacker.end()
        if self._unsure:
            gathered = self._settle_framing(begins_a_stream(self._whole) is True)
            self._gather(gathered) if self._framing == "whole" else self._read(gathered)
        if self._framing in ("whole", "sound"):
            if not self._unpacker.broken:
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

    def _begin(self, plain: bytes) -> bytes:
        """Gathers until the answer's beginning tells how it is cut; what is to be read then."""
        self._whole += plain
        is_stream = begins_a_stream(self._whole)
        return b"" if is_stream is None else self._settle_framing(is_stream)

    def _settle_framing(self, is_stream: bool) -> bytes:
        self._unsure = False
        gathered = bytes(self._whole)
        self._whole.clear()
        if is_stream:
            self._framing, self._splitter = "events", Splitter()
            self._skims = self._reader.telling is not None
        elif gathered.lstrip()[:1] == b"{":
            self._framing = "whole"  # no stream and no array, but one answer
        return gathered

    def _note_unread(self) -> None:
        """What of the answer has told its reader nothing, as bytes that were passed on."""
        unread = self.unread or (self._framing == "whole" and self._whole)
        self._reader.found.unread_bytes = self._fed_bytes if unread else 0

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
        self._saw_data = True
        if b"\n" not in data or _is_json(data):
            return self._show(self._reader.event, data)
        for line in data.split(b"\n"):  # events that no empty line parts
            self._show(self._reader.event, line)
        return False

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


def _is_json(body: bytes | bytearray) -> bool:
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return True
