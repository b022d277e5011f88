"""However bytes are cut on their way, they mean the same."""

import asyncio
import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.kit import httpd
from infra.kit.errors import AlcoveError
from infra.kit.http1.heads import CHUNKED, UNTIL_CLOSED, Malformed, framing, write_head
from infra.kit.httpd.reader import Reader
from infra.kit.httpd.refusals import Refusal
from infra.kit.httpd.request import Request
from infra.kit.relay.connection import Connection
from tests.kit.relay import golden

pytestmark = pytest.mark.thorough

ANSWERS, REQUESTS = list(golden.answers()), list(golden.requests())
RANDOM_CUTS = 12


def every_cut(data: bytes) -> list[list[bytes]]:
    """Whole, in two at every byte, byte by byte, and at random places."""
    dice = random.Random(len(data))
    some = [
        golden.cuts(data, dice.sample(range(1, len(data)), min(dice.randint(2, 9), len(data) - 1)))
        for _ in range(RANDOM_CUTS)
    ]
    halves = [golden.cuts(data, [at]) for at in range(1, len(data))]
    return [[data], *halves, golden.cuts(data, list(range(1, len(data)))), *some]


def test_there_are_fifty_of_each() -> None:
    assert len(set(ANSWERS)) >= 46
    assert len(REQUESTS) == len(ANSWERS) == 50


async def answer_of(pieces: list[bytes]) -> tuple[int, list[tuple[str, str]], bytes, bool]:
    """What a connection makes of an answer: status, headers, body, and whether it may be used again."""
    connection = Connection(asyncio.get_running_loop(), golden.TIMEOUTS, golden.Nowhere())
    connection.connection_made(golden.Still())
    sending = asyncio.ensure_future(connection.send(b"", b"", bodiless=False))
    await asyncio.sleep(0)
    for piece in pieces:
        connection.data_received(piece)
    answer = await sending
    body = b"".join([chunk async for chunk in answer.chunks()])
    found = answer.status, list(answer.headers), body, connection.reusable()
    connection.abort()
    return found


@pytest.mark.parametrize("number", range(len(ANSWERS)))
async def test_answer_means_the_same_when_it_is_cut_anywhere(number: int) -> None:
    whole, *cut = every_cut(ANSWERS[number])
    wanted = await answer_of(whole)
    for pieces in cut:
        assert await answer_of(pieces) == wanted, pieces


@dataclass
class Mute:
    """A connection that hears nothing."""

    limits: httpd.Limits
    capacity: httpd.Capacity
    full: bool = False

    def hold(self) -> None: ...
    def flow(self) -> None: ...
    async def read(self, request: Request) -> bytes:
        return await request.inflow.read()


async def requests_of(pieces: list[bytes]) -> list[tuple[object, ...]]:
    """What a reader makes of requests that follow each other."""
    found: list[Request] = []
    mute = Mute(httpd.Limits(), httpd.Capacity())
    reader = Reader(mute, began=lambda: None, arrived=found.append)
    for piece in pieces:
        reader.feed(piece)
    assert reader.incoming is None
    return [
        (r.method, r.target, r.version, r.headers, r.length, r.keep_alive, await r.body())
        for r in found
    ]


@pytest.mark.parametrize("number", range(len(REQUESTS)))
async def test_request_means_the_same_when_it_is_cut_anywhere(number: int) -> None:
    data = REQUESTS[number]
    if b"HTTP/1.0" not in data:
        data += REQUESTS[(number * 7) % 35]
    whole, *cut = every_cut(data)
    wanted = await requests_of(whole)
    assert len(wanted) == 2 - (b"HTTP/1.0" in data)
    for pieces in cut:
        assert await requests_of(pieces) == wanted, pieces


NAMES = st.sampled_from(
    ["x", "Content-Length", "transfer-encoding", "Set-Cookie", "a:b", "", "a b"]
)
VALUES = st.text(max_size=12) | st.sampled_from(
    ["5", "+5", "5, 5", "chunked", "Chunked", "gzip", ""]
)


@given(headers=st.lists(st.tuples(NAMES, VALUES), max_size=6), start=st.text(max_size=20))
@settings(max_examples=500, deadline=None)
def test_head_is_read_as_it_was_meant_when_it_is_written(
    headers: list[tuple[str, str]], start: str
) -> None:
    try:
        written = write_head(start, headers).decode("latin-1")
    except AlcoveError as error:
        assert error.code == "invalid"
        return
    first, *lines, empty, nothing = written.split("\r\n")
    assert (first, empty, nothing) == (start, "", "")
    assert [tuple(line.split(": ", 1)) for line in lines] == headers


@given(headers=st.lists(st.tuples(NAMES, VALUES), max_size=6))
@settings(max_examples=500, deadline=None)
def test_framing_is_refused_when_there_could_be_two_opinions(
    headers: list[tuple[str, str]],
) -> None:
    saying = [
        (k.lower(), v) for k, v in headers if k.lower() in ("content-length", "transfer-encoding")
    ]
    try:
        found = framing(headers)
    except Malformed:
        assert saying
        return
    if not saying:
        assert found == UNTIL_CLOSED
        return
    ((name, value),) = saying
    assert found == (CHUNKED if name == "transfer-encoding" else int(value))
    assert value.lower() == "chunked" or value.isascii()


@given(junk=st.lists(st.binary(max_size=40) | st.sampled_from(REQUESTS), max_size=5))
@settings(max_examples=400, deadline=None)
def test_reader_refuses_with_a_status_of_the_clients_when_bytes_are_random(
    junk: list[bytes],
) -> None:
    mute = Mute(httpd.Limits(), httpd.Capacity())
    reader = Reader(mute, began=lambda: None, arrived=lambda request: None)
    try:
        for piece in junk:
            reader.feed(piece)
    except Refusal as refusal:
        assert refusal.status in (400, 429, 431, 501)
