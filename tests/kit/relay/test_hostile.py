"""Answers that are made to confuse: each is bad_gateway, and its connection is never used again."""

from pathlib import Path

import pytest

from infra.kit.errors import AlcoveError
from infra.kit.relay import ProtocolUpstream, RelayRequest
from tests.kit.relay.over_aiohttp import HttpUpstream
from tests.kit.relay.raw import OK, Kind, Raw, answers, body_of, raw_upstream

LINE = b"HTTP/1.1 200 OK\r\n"
HOSTILE = {
    "two lengths": LINE + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
    "two equal lengths": LINE + b"content-length: 5\r\ncontent-length: 5\r\n\r\nhello",
    "length list": LINE + b"content-length: 5, 5\r\n\r\nhello",
    "length and coding": LINE + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding and length": LINE + b"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
    "signed length": LINE + b"content-length: +5\r\n\r\nhello",
    "negative length": LINE + b"content-length: -5\r\n\r\nhello",
    "long length": LINE + b"content-length: 99999999999999999999999\r\n\r\nhello",
    "odd coding": LINE + b"transfer-encoding: gzip\r\n\r\nhello",
    "coding list": LINE + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "coding in two lines": LINE
    + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "NUL": LINE + b"x: a\0b\r\ncontent-length: 0\r\n\r\n",
    "folded header": LINE + b"x: a\r\n b\r\ncontent-length: 0\r\n\r\n",
    "space before colon": LINE + b"content-length : 5\r\n\r\nhello",
    "bare line feeds": b"HTTP/1.1 200 OK\ncontent-length: 5\n\nhello",
    "long head": LINE + b"x: " + b"y" * 200_000 + b"\r\n\r\n",
    "endless header": LINE + b"x: " + b"y" * 400_000,
    "many headers": LINE + b"x: y\r\n" * 129 + b"content-length: 0\r\n\r\n",
    "endless interim": b"HTTP/1.1 100 Continue\r\n\r\n" * 50 + OK,
    "switch": b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nhello",
    "switch without upgrade": b"HTTP/1.1 101 Switching\r\n\r\n",
    "endless chunk size": LINE + b"transfer-encoding: chunked\r\n\r\n" + b"1" * 100,
    "negative chunk size": LINE + b"transfer-encoding: chunked\r\n\r\n-1\r\n",
    "endless extension": LINE + b"transfer-encoding: chunked\r\n\r\n5;" + b"x" * 400_000,
    "endless trailer": LINE + b"transfer-encoding: chunked\r\n\r\n0\r\nx: " + b"y" * 400_000,
    "not HTTP": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "a request": b"GET / HTTP/1.1\r\nhost: h\r\n\r\n",
    "version 3": b"HTTP/3.0 200 OK\r\ncontent-length: 0\r\n\r\n",
    "no status": b"HTTP/1.1\r\ncontent-length: 0\r\n\r\n",
}
# aiohttp lets these through, which is one reason for the other implementation.
LENIENT = {
    "bare line feeds",
    "coding in two lines",
    "coding list",
    "endless extension",
    "endless interim",
    "folded header",
    "odd coding",
    "space before colon",
    "switch",
    "switch without upgrade",
}
CASES: list[tuple[Kind, str]] = [
    *((ProtocolUpstream, name) for name in HOSTILE),
    *((HttpUpstream, name) for name in HOSTILE if name not in LENIENT),
]


@pytest.mark.parametrize(("kind", "name"), CASES)
async def test_answer_is_bad_gateway_when_it_is_ambiguous(
    kind: Kind, name: str, tmp_path: Path
) -> None:
    async with raw_upstream(kind, tmp_path, answers(HOSTILE[name])) as (raw, upstream):
        for _ in range(2):
            with pytest.raises(AlcoveError) as caught:
                await body_of(upstream)
            assert caught.value.code == "bad_gateway"
        assert raw.connections == 2


SURPLUS = {
    "a whole answer": OK + OK,
    "half a head": OK + b"HTTP/1.1 2",
    "after a chunked body": LINE
    + b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    + OK,
    "garbage": OK + b"garbage",
    "a body where none may be": b"HTTP/1.1 204 No Content\r\n\r\nhello",
    "a body after 304": b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\nhello",
    "after close": b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello" + OK,
}


@pytest.mark.parametrize("name", SURPLUS)
async def test_forged_answer_is_never_given_to_the_next_when_bytes_are_surplus(
    name: str, tmp_path: Path
) -> None:
    async with raw_upstream(ProtocolUpstream, tmp_path, answers(SURPLUS[name])) as (raw, upstream):
        for _ in range(3):
            assert await body_of(upstream) in (b"hello", b"")
        assert raw.connections == 3


async def test_head_answer_with_a_body_closes_the_connection(tmp_path: Path) -> None:
    head = RelayRequest("HEAD", "/", [("host", "h")])
    async with raw_upstream(ProtocolUpstream, tmp_path, answers(OK)) as (raw, upstream):
        for _ in range(2):
            assert await body_of(upstream, head) == b""
        assert raw.connections == 2


@pytest.mark.parametrize(
    ("method", "target", "headers"),
    [
        ("GET", "/a b", []),
        ("GET", "/a\r\nx: y", []),
        ("GET", "/\u20ac", []),
        ("GET /x", "/", []),
        ("G\r\nET", "/", []),
        ("GET", "/", [("x", "a\r\nb: c")]),
        ("GET", "/", [("x", "a\nb")]),
        ("GET", "/", [("x", "a\rb")]),
        ("GET", "/", [("x", "a\0b")]),
        ("GET", "/", [("x", "\u20ac")]),
        ("GET", "/", [("x: y", "z")]),
        ("GET", "/", [("", "z")]),
    ],
)
async def test_nothing_is_sent_when_a_request_would_be_read_as_another(
    method: str, target: str, headers: list[tuple[str, str]], tmp_path: Path
) -> None:
    async with raw_upstream(ProtocolUpstream, tmp_path, answers(OK)) as (raw, upstream):
        with pytest.raises(AlcoveError) as caught:
            await upstream.open(RelayRequest(method, target, [("host", "h"), *headers]))
    assert caught.value.code == "invalid"
    assert isinstance(raw, Raw)
    assert raw.connections == 0


async def test_framing_of_the_caller_is_replaced_when_it_lies(tmp_path: Path) -> None:
    lies = [
        ("host", "h"),
        ("content-length", "999"),
        ("Transfer-Encoding", "chunked"),
        ("Expect", "100-continue"),
        ("connection", "close"),
    ]
    async with raw_upstream(ProtocolUpstream, tmp_path, answers(OK)) as (raw, upstream):
        await body_of(upstream, RelayRequest("POST", "/", lies, b"abc"))
    assert raw.heads == [b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\n"]
    assert raw.bodies == [b"abc"]
