"""Reading an event stream without reading all of it: what only carries text is put by until its length matters.

Most events of a stream say a few words and nothing that money depends on but how many they were, and that only
where the provider does not tell what it used. So they are looked at as bytes, and kept; whatever may tell more is
read at once. The answer is the same as if every event had been read when it came.
"""

import re
from collections.abc import Callable

from metering_proxy.wires.events import Splitter

# Above this, what was put by is read: memory for a stream has a bound.
_MOST_BYTES = 64 * 1024
_LONG_EVENT_BYTES = 64 * 1024
_LEAST_SHARED_BYTES = 32
# An event that ends otherwise is rare, and may be what ends the stream.
_END_OF_AN_OBJECT = b"}\n\n"


class Skimmer:
    """Takes over from a splitter at the end of an event. `show`: lets the reader look, True where to drop.

    `over`: it met what it does not skim (a CR, a very long event), and the splitter has to go on with `rest`.
    """

    def __init__(
        self, splitter: Splitter, telling: re.Pattern[bytes], show: Callable[[bytes], bool | None]
    ) -> None:
        self._splitter, self._telling, self._show = splitter, telling, show
        self._held = splitter.rest()
        self._beginning = b""
        self._put_by: list[bytes] = []  # without their beginning, which is most of them
        self._others: list[bytes] = []
        self._put_by_bytes = 0
        self.over = False

    def feed(self, plain: bytes) -> bytes:
        """The bytes of whole events to pass on."""
        data = self._held + plain if self._held else plain
        end = data.rfind(b"\n\n") + 2
        if b"\r" in plain or (end < 2 and len(data) > _LONG_EVENT_BYTES):
            self._held, self.over = data, True
            return b""
        if end < 2:
            self._held = data
            return b""
        whole, self._held = (data, b"") if end == len(data) else (data[:end], data[end:])
        found = self._telling.search(whole)
        if found is None and whole.endswith(_END_OF_AN_OBJECT):
            self._keep(whole)
            return whole
        before = whole.rfind(b"\n\n", 0, found.start() if found else len(whole) - 1)
        if before < 0:
            return self._read(whole)
        self._keep(whole[: before + 2])
        return whole[: before + 2] + self._read(whole[before + 2 :])

    def rest(self) -> bytes:
        """What has come of an event that is not complete; taken out."""
        held, self._held = self._held, b""
        return held

    def catch_up(self) -> None:
        """Reads what was put by. In which order it came matters to no reader."""
        cut = [self._beginning + part for part in self._put_by]
        waiting, self._put_by, self._others, self._put_by_bytes = [*self._others, *cut], [], [], 0
        if waiting:
            for _, data in Splitter().feed(b"".join(waiting)):
                if data is not None:
                    self._show(data)

    def _read(self, whole: bytes) -> bytes:
        kept = []
        for raw, data in self._splitter.feed(whole):
            if data is None or not self._tells(raw):
                self._keep(raw)
                kept.append(raw)
            elif not self._show(data):
                kept.append(raw)
        self._held = self._splitter.rest() + self._held  # an empty line too many
        return b"".join(kept)

    def _tells(self, raw: bytes) -> bool:
        return not raw.endswith(_END_OF_AN_OBJECT) or self._telling.search(raw) is not None

    def _keep(self, raw: bytes) -> None:
        beginning = self._beginning
        if (beginning and raw.startswith(beginning)) or self._begins_alike(raw):
            raw = raw[len(self._beginning) :]
            self._put_by.append(raw)
        else:
            self._others.append(raw)
        self._put_by_bytes += len(raw)
        if self._put_by_bytes > _MOST_BYTES:
            self.catch_up()

    def _begins_alike(self, raw: bytes) -> bool:
        """Learns how events begin from the first two that are alike, and from those whose words differ sooner."""
        known = self._beginning
        before = known or (self._others[-1] if self._others else b"")
        shared = _shared(before, raw)
        if len(shared) < max(_LEAST_SHARED_BYTES, len(known) // 2):
            return False
        given_back = known[len(shared) :]
        if given_back:
            self._put_by = [given_back + part for part in self._put_by]
            self._put_by_bytes += len(given_back) * len(self._put_by)
        self._beginning = shared
        return True


def _shared(one: bytes, other: bytes) -> bytes:
    """What both begin with."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[:middle] == other[:middle]:
            least = middle
        else:
            most = middle - 1
    return one[:least]
