"""The seam's promises, over both implementations: the same bytes, honest endings, clean reuse only."""

import asyncio
from pathlib import Path

import pytest

from infra.kit.relay import RelayRequest, end_to_end
from tests.kit.relay.raw import GET, OK, Kind, answers, body_of, raw_upstream
from tests.waiting import stretch, until


async def test_connection_is_reused_when_the_body_was_read(kind: Kind, tmp_path: Path) -> None:
    """A wrong keep-alive check costs two thirds of the speed, and nothing else notices."""
    async with raw_upstream(kind, tmp_path, answers(OK)) as (raw, upstream):
        for _ in range(100):
            assert await body_of(upstream) == b"hello"
        assert raw.connections == 1


KEPT = {
    "chunked": (
        b"transfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
        b"hello",
    ),
    "trailer": (b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx: y\r\n\r\n", b"hello"),
    "empty": (b"content-length: 0\r\n\r\n", b""),
    "keep-alive said": (b"connection: keep-alive\r\ncontent-length: 1\r\n\r\na", b"a"),
}


@pytest.mark.parametrize("name", KEPT)
async def test_connection_is_reused_when_the_answer_says_its_end(
    name: str, kind: Kind, tmp_path: Path
) -> None:
    rest, body = KEPT[name]
    async with raw_upstream(kind, tmp_path, answers(b"HTTP/1.1 200 OK\r\n" + rest)) as (
        raw,
        upstream,
    ):
        for _ in range(3):
            response = await upstream.open(GET)
            assert "x" not in [key for key, _ in response.headers]
            assert b"".join([chunk async for chunk in response.chunks()]) == body
            await response.close()
        assert raw.connections == 1


@pytest.mark.parametrize(
    ("method", "head"),
    [
        ("HEAD", b"200 OK\r\ncontent-length: 5"),
        ("HEAD", b"200 OK\r\ntransfer-encoding: chunked"),
        ("GET", b"204 No Content\r\nx: y"),
        ("GET", b"304 Not Modified\r\nx: y"),
        ("POST", b"204 No Content\r\nx: y"),
    ],
)
async def test_connection_is_reused_when_the_answer_has_no_body(
    method: str, head: bytes, kind: Kind, tmp_path: Path
) -> None:
    raw_answer = b"HTTP/1.1 " + head + b"\r\n\r\n"
    async with raw_upstream(kind, tmp_path, answers(raw_answer)) as (raw, upstream):
        for _ in range(3):
            assert await body_of(upstream, RelayRequest(method, "/", [("host", "h")])) == b""
        assert raw.connections == 1


@pytest.mark.parametrize(
    "raw_answer",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello",
    ],
)
async def test_connection_is_closed_when_the_upstream_says_so(
    raw_answer: bytes, kind: Kind, tmp_path: Path
) -> None:
    async with raw_upstream(kind, tmp_path, answers(raw_answer)) as (raw, upstream):
        for _ in range(3):
            assert await body_of(upstream) == b"hello"
        assert raw.connections == 3


async def test_body_ends_with_the_connection_when_no_length_is_said(
    kind: Kind, tmp_path: Path
) -> None:
    handler = answers(b"HTTP/1.1 200 OK\r\nx: y\r\n\r\nhello", then_close=True)
    async with raw_upstream(kind, tmp_path, handler) as (raw, upstream):
        for _ in range(2):
            assert await body_of(upstream) == b"hello"
        assert raw.connections == 2


async def test_interim_answers_are_skipped_when_they_come_first(kind: Kind, tmp_path: Path) -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    async with raw_upstream(kind, tmp_path, answers(interim + OK)) as (raw, upstream):
        for _ in range(2):
            response = await upstream.open(GET)
            assert response.status == 200
            assert [key.lower() for key, _ in response.headers] == ["content-length"]
            assert [chunk async for chunk in response.chunks()] == [b"hello"]
            await response.close()
        assert raw.connections == 1


async def test_upstream_is_held_back_when_the_reader_is_slow(kind: Kind, tmp_path: Path) -> None:
    size, written = 16_000_000, 0

    async def handler(_: object, writer: asyncio.StreamWriter, __: bytes) -> None:
        nonlocal written
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        for _ in range(size // 100_000):
            writer.write(bytes(100_000))
            await writer.drain()
            written += 100_000

    async with raw_upstream(kind, tmp_path, handler) as (_, upstream):
        response = await upstream.open(GET)
        chunks = response.chunks()
        read, before = len(await anext(chunks)), -1
        while written != before:
            before = written
            await stretch(0.05)  # long enough to write more, if anything took it
        assert written < 4_000_000
        async for chunk in chunks:
            read += len(chunk)
        await response.close()
    assert read == size


async def test_body_is_sent_with_its_length_when_there_is_one(kind: Kind, tmp_path: Path) -> None:
    async with raw_upstream(kind, tmp_path, answers(OK)) as (raw, upstream):
        for size in (3, 500_000):
            body = bytes(size)
            await body_of(upstream, RelayRequest("POST", "/", [("host", "h")], body))
            assert raw.bodies[-1] == body
            assert b"content-length: %d\r\n" % size in raw.heads[-1].lower()
        assert raw.connections == 1


async def test_host_is_added_when_the_request_has_none(kind: Kind, tmp_path: Path) -> None:
    async with raw_upstream(kind, tmp_path, answers(OK)) as (raw, upstream):
        await body_of(upstream, RelayRequest("GET", "/", []))
    assert b"host: localhost\r\n" in raw.heads[0].lower()


async def test_connection_is_closed_when_surplus_bytes_follow(kind: Kind, tmp_path: Path) -> None:
    surplus = OK + b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged"
    async with raw_upstream(kind, tmp_path, answers(surplus)) as (raw, upstream):
        for _ in range(3):
            assert await body_of(upstream) == b"hello"
        assert raw.connections == 3


async def test_connection_is_closed_when_the_body_was_left_half_read(
    kind: Kind, tmp_path: Path
) -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"
    async with raw_upstream(kind, tmp_path, answers(head)) as (raw, upstream):
        response = await upstream.open(GET)
        async for chunk in response.chunks():
            assert chunk == b"hello"
            break
        await response.close()
        await until(lambda: raw.closed == 1)


async def test_first_chunk_arrives_when_the_rest_is_still_to_come(
    kind: Kind, tmp_path: Path
) -> None:
    go_on = asyncio.Event()

    async def handler(_: object, writer: asyncio.StreamWriter, __: bytes) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n")
        await go_on.wait()
        writer.write(b"3\r\ntwo\r\n0\r\n\r\n")

    async with raw_upstream(kind, tmp_path, handler) as (_, upstream):
        response = await upstream.open(GET)
        chunks = response.chunks()
        assert await anext(chunks) == b"one"
        go_on.set()
        assert [chunk async for chunk in chunks] == [b"two"]
        await response.close()


async def test_request_is_sent_byte_for_byte_when_relayed(kind: Kind, tmp_path: Path) -> None:
    target = "/a%2Fb//c/../d?x=%20+&y=%C3%BC&&"
    async with raw_upstream(kind, tmp_path, answers(OK)) as (raw, upstream):
        await body_of(upstream, RelayRequest("GET", target, [("host", "h"), ("X-One", "a")]))
    first, *lines = raw.heads[0].decode().split("\r\n")
    assert first == f"GET {target} HTTP/1.1"
    assert "X-One: a" in lines
    names = {line.split(":")[0].lower() for line in lines if line}
    assert names <= {"host", "x-one"}


async def test_answer_is_not_decoded_when_compressed(kind: Kind, tmp_path: Path) -> None:
    raw_body = b"\x1f\x8bnot really gzip"
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(
        raw_body
    )
    async with raw_upstream(kind, tmp_path, answers(head + raw_body)) as (_, upstream):
        assert await body_of(upstream) == raw_body


async def test_redirect_is_given_on_when_the_upstream_answers_one(
    kind: Kind, tmp_path: Path
) -> None:
    moved = b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
    async with raw_upstream(kind, tmp_path, answers(moved)) as (raw, upstream):
        response = await upstream.open(GET)
        assert response.status == 302
        await response.close()
    assert len(raw.heads) == 1


def test_hop_by_hop_headers_stay_behind_when_forwarded() -> None:
    given = [
        ("Connection", "close, X-Private"),
        ("x-private", "1"),
        ("Transfer-Encoding", "chunked"),
        ("TE", "trailers"),
        ("Upgrade", "websocket"),
        ("Keep-Alive", "x"),
        ("Proxy-Authorization", "x"),
        ("Content-Type", "a/b"),
        ("Set-Cookie", "a"),
        ("Set-Cookie", "b"),
    ]
    kept = [("Content-Type", "a/b"), ("Set-Cookie", "a"), ("Set-Cookie", "b")]
    assert end_to_end(given) == kept
