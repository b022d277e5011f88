"""Event streams: however the bytes are cut, the events are the same."""

import codecs
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.kit import sse
from infra.kit.sse import Event, Parser

GOLDEN: dict[str, tuple[bytes, list[Event]]] = {
    "lf": (b"data: a\n\ndata: b\n\n", [Event("a"), Event("b")]),
    "crlf": (b"id: 1\r\ndata: a\r\n\r\ndata: b\r\n\r\n", [Event("a", id="1"), Event("b", id="1")]),
    "cr": (b"data: a\r\rdata: b\r\r", [Event("a"), Event("b")]),
    "mixed ends": (b"data: a\r\ndata: b\n\rdata: c\r\n\n", [Event("a\nb"), Event("c")]),
    "mark": (codecs.BOM_UTF8 + b"data: a\n\n", [Event("a")]),
    "mark only at the start": (
        b"data: a\n\n" + codecs.BOM_UTF8 + b"data: b\n\ndata: c\n\n",
        [Event("a"), Event("c")],
    ),
    "comments": (b": hi\n\n:\ndata: a\n: mid\ndata: b\n\n", [Event("a\nb")]),
    "no space": (b"data:a\nid:7\nevent:go\n\n", [Event("a", "go", "7")]),
    "one space only": (b"data:  a\n\n", [Event(" a")]),
    "many lines": (b"data: a\ndata\ndata: b\n\n", [Event("a\n\nb")]),
    "empty data": (b"data\n\ndata:\n\n", [Event(""), Event("")]),
    "no data": (b"event: lonely\nid: 4\n\ndata: a\n\n", [Event("a", id="4")]),
    "id with nul": (b"id: a\0b\ndata: a\n\n", [Event("a")]),
    "id reset": (b"id: 1\ndata: a\n\nid\ndata: b\n\n", [Event("a", id="1"), Event("b")]),
    "retry": (
        b"retry: 1500\ndata: a\n\nretry: x\ndata: b\n\n",
        [Event("a", retry_ms=1500), Event("b")],
    ),
    "unknown field": (b"what: ever\ndata: a\n\n", [Event("a")]),
    "runes": ("data: grüß 🌍 明天\n\n".encode(), [Event("grüß 🌍 明天")]),
    "colon in data": (b"data: a: b\n\n", [Event("a: b")]),
    "unfinished": (b"data: a\n\ndata: b\n", [Event("a")]),
    "not UTF-8": (b"data: \xff\n\n", [Event("\ufffd")]),
}


def parse(*chunks: bytes) -> list[Event]:
    parser = Parser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


@pytest.mark.parametrize("name", GOLDEN)
def test_events_are_as_the_grammar_says_when_whole(name: str) -> None:
    raw, events = GOLDEN[name]
    assert parse(raw) == events


@pytest.mark.parametrize("name", GOLDEN)
def test_events_are_the_same_when_cut_at_every_byte(name: str) -> None:
    raw, events = GOLDEN[name]
    assert parse(*(raw[i : i + 1] for i in range(len(raw)))) == events
    for at in range(len(raw) + 1):
        assert parse(raw[:at], raw[at:]) == events
        assert parse(raw[:at], b"", raw[at:]) == events


@given(st.data())
def test_events_are_the_same_when_cut_anywhere(data: st.DataObject) -> None:
    raw = b"".join(golden for golden, _ in GOLDEN.values())
    cuts = sorted(data.draw(st.sets(st.integers(0, len(raw)))))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert parse(*pieces) == parse(raw)


@given(st.text(), st.from_regex(r"[^\r\n\0]*", fullmatch=True))
def test_frame_is_read_back_when_written(text: str, event_id: str) -> None:
    raw = sse.frame(text, event_id=event_id.strip(), event="go", retry_ms=5)
    normal = text.replace("\r\n", "\n").replace("\r", "\n")
    assert parse(raw) == [Event(normal, "go", event_id.strip(), 5)]


def test_frame_refuses_when_an_id_would_begin_a_new_field() -> None:
    with pytest.raises(ValueError, match="one line"):
        sse.frame("x", event_id="1\ndata: forged")
    with pytest.raises(ValueError, match="one line"):
        sse.frame("x", event="go\r\nid: 9")


def test_time_grows_with_the_bytes_alone_when_there_are_only_line_ends() -> None:
    def cost_s(size: int) -> float:
        began_s = time.thread_time()
        assert parse(b"\n" * size) == []
        return time.thread_time() - began_s

    cost_s(1000)
    assert cost_s(1 << 20) < 40 * cost_s(1 << 16)


def test_long_line_passes_when_below_the_bound_and_fails_above() -> None:
    line = "x" * 70_000
    assert parse(f"data: {line}\n\n".encode()) == [Event(line)]
    small = Parser(max_line_chars=100)
    with pytest.raises(ValueError, match="longer than 100"):
        for _ in range(3):
            list(small.feed(b"x" * 50))


def test_heartbeat_is_no_event_when_read() -> None:
    assert parse(sse.HEARTBEAT, b"data: a\n\n") == [Event("a")]
