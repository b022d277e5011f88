"""A stream that is skimmed is read as if every event had been read when it came, and takes little to keep."""

import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metering_proxy.tenant_side.skimming import Skimmer
from metering_proxy.wires.events import Splitter

_TELLING = re.compile(rb"tells")
_FRAME = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767225600,"model":"some-model",'
    b'"choices":[{"delta":{"content":"%b"}}]}\n\n'
)


def _skimmed(parts: list[bytes]) -> tuple[bytes, list[bytes]]:
    """What was passed on, and what the reader was shown, whenever it was."""
    shown: list[bytes] = []
    passed, splitter = b"", Splitter()
    skimmer = Skimmer(splitter, _TELLING, lambda data: shown.append(data))
    for part in parts:
        passed += skimmer.feed(part)
        if skimmer.over:
            break
    skimmer.catch_up()
    return passed + skimmer.rest(), shown


def _data(stream: bytes) -> list[bytes]:
    return [data for _, data in Splitter().feed(stream) if data is not None]


_PIECES = st.sampled_from(
    (b"data: x", b"data: y", b"event: e", b": c", b"data: tells", b"\n", b"\n\n", b"id: 1")
)


@given(st.lists(st.lists(_PIECES, max_size=6).map(b"".join), max_size=12))
def test_every_event_is_shown_once_when_a_stream_is_cut_anywhere(parts: list[bytes]) -> None:
    passed, shown = _skimmed(parts)
    assert passed == b"".join(parts)
    assert sorted(shown) == sorted(_data(b"".join(parts)))


@pytest.mark.parametrize(
    "words",
    [
        [b"a", b"b", b"", b"a", b"a longer one"],
        [b"same"] * 5,
        [b"the", b"than", b"to", b"of", b"", b"the"],
        [b"a\\n\\nb", b'data: {"id"', b"", b"z"],
    ],
)
def test_events_that_begin_alike_come_out_as_they_went_in(words: list[bytes]) -> None:
    events = [_FRAME % word for word in words]
    assert sorted(_skimmed(events)[1]) == sorted(event[6:-2] for event in events)
    together = [b"".join(events[:2]), b"".join(events[2:]), *events]
    assert sorted(_skimmed(together)[1]) == sorted(2 * [event[6:-2] for event in events])


def test_what_is_put_by_takes_a_fraction_of_what_was_passed_on() -> None:
    skimmer = Skimmer(Splitter(), _TELLING, lambda _: None)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(500):
        skimmer.feed(_FRAME % b"%d" % (1_000_000 + 999 * number))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 500 * len(_FRAME) / 2


@pytest.mark.parametrize("behind", [b"", _FRAME % b"word"], ids=["alone", "behind another"])
def test_end_of_a_stream_is_shown_at_once_when_all_before_it_is_put_by(behind: bytes) -> None:
    shown: list[bytes] = []
    skimmer = Skimmer(Splitter(), _TELLING, lambda data: shown.append(data))
    for part in (_FRAME % b"a", _FRAME % b"b", behind + b"data: [DONE]\n\n"):
        assert skimmer.feed(part) == part
    assert shown == [b"[DONE]"]
