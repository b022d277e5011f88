"""Coded errors keep their identity on the wire; an answer without one keeps its status."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.kit.errors import STATUS, AlcoveError, from_response

DETAILS = st.dictionaries(
    st.text(st.characters(categories=["Ll"]), min_size=1, max_size=9).filter(
        lambda k: k not in ("code", "message", "self")
    ),
    st.integers() | st.text(max_size=9) | st.booleans(),
    max_size=3,
)


@given(st.sampled_from(sorted(STATUS)), st.text(), DETAILS)
def test_error_is_the_same_when_it_crossed_the_wire(code: str, message: str, details: dict) -> None:
    sent = AlcoveError(code, message, **details)
    got = from_response(sent.status, sent.body("request-1"))
    assert (got.code, got.message, got.details) == (code, message, details)


def test_error_can_be_sent_when_it_repeats_what_no_encoding_can_say() -> None:
    details = {"fields": [{"field": "\udfff", "problem": "twice"}], "\ud800": 1}
    error = AlcoveError("invalid", "\ud800 is given twice", **details)
    sent = orjson.loads(orjson.dumps(error.body()))["error"]
    assert sent["message"] == str(error) == "? is given twice"
    assert sent["details"] == {"fields": [{"field": "?", "problem": "twice"}], "?": 1}


@pytest.mark.parametrize("depth", [15, 300, 900])
def test_error_can_be_sent_when_its_details_are_nested_without_end(depth: int) -> None:
    said = b'{"a":%b1%b,"reason":"r"}' % (b"[" * depth, b"]" * depth)
    error = from_response(
        409, {"error": {"code": "conflict", "message": "m", "details": orjson.loads(said)}}
    )
    sent = orjson.loads(orjson.dumps(error.body()))["error"]
    assert (error.reason, sent["message"]) == ("r", "m")
    assert (b"[1]" in orjson.dumps(sent)) == (depth == 15)


def test_status_and_code_map_both_ways_when_listed() -> None:
    assert len(set(STATUS.values())) == len(STATUS)
    assert {from_response(status, None).code for status in STATUS.values()} == set(STATUS)


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (418, None, "invalid"),
        (520, "<html>", "bad_gateway"),
        (503, {"error": "down"}, "unavailable"),
        (404, {"error": {"code": "made_up", "message": "x"}}, "not_found"),
        (404, {"error": {"code": "conflict", "message": 7}}, "not_found"),
        (404, {"error": {"code": ["a"], "message": "x"}}, "not_found"),
    ],
)
def test_answer_keeps_its_status_when_it_has_no_known_shape(
    status: int, body: object, code: str
) -> None:
    assert from_response(status, body).code == code


@pytest.mark.parametrize("reserved", ["code", "message", "self"])
def test_details_cannot_break_the_reader_when_named_like_its_own(reserved: str) -> None:
    body = {
        "error": {"code": "conflict", "message": "m", "details": {reserved: "x", "reason": "r"}}
    }
    got = from_response(409, body)
    assert (got.code, got.message, got.reason) == ("conflict", "m", "r")


def test_unknown_code_is_refused_when_raised() -> None:
    with pytest.raises(ValueError, match="unknown error code"):
        AlcoveError("oops", "x")
