"""The seam's promises, over both implementations: the same bytes, honest endings, clean reuse only."""

import asyncio
from pathlib import Path

import pytest

from infra.kit import unix
from infra.kit.errors import AlcoveError
from infra.kit.relay import RelayRequest, Timeouts, end_to_end
from tests.kit.relay.raw import GET, OK, Kind, answers, body_of, raw_upstream
from tests.waiting import until


async def test_connection_is_reused_when_the_body_was_read(kind: Kind, tmp_path: Path) -> None:
    async with raw_upstream(kind, tmp_path, answers(OK)) as (raw, upstream):
        for _ in range(5):
            assert await body_of(upstream) == b"hello"
        assert raw.connections == 1


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


@pytest.mark.parametrize(
    "broken",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
)
async def test_answer_is_bad_gateway_when_it_breaks_off(
    kind: Kind, tmp_path: Path, broken: bytes
) -> None:
    async def handler(_: object, writer: asyncio.StreamWriter, __: bytes) -> None:
        writer.write(broken)
        await writer.drain()
        raise ConnectionError

    async with raw_upstream(kind, tmp_path, handler) as (_, upstream):
        with pytest.raises(AlcoveError) as caught:
            await body_of(upstream)
    assert caught.value.code == "bad_gateway"


@pytest.mark.parametrize("garbage", [b"", b"what?\r\n\r\n", b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n"])
async def test_open_is_bad_gateway_when_no_answer_comes(
    kind: Kind, tmp_path: Path, garbage: bytes
) -> None:
    async def handler(_: object, writer: asyncio.StreamWriter, __: bytes) -> None:
        writer.write(garbage)
        await writer.drain()
        raise ConnectionError

    async with raw_upstream(kind, tmp_path, handler) as (_, upstream):
        with pytest.raises(AlcoveError) as caught:
            await upstream.open(GET)
    assert caught.value.code == "bad_gateway"


async def test_open_is_unavailable_when_nobody_listens(kind: Kind, tmp_path: Path) -> None:
    async with kind(f"unix://{tmp_path}/none.sock") as upstream:
        with pytest.raises(AlcoveError) as caught:
            await upstream.open(GET)
    assert (caught.value.code, caught.value.reason) == ("unavailable", "unreachable")


async def test_open_is_unavailable_when_a_stranger_owns_the_socket(
    kind: Kind, tmp_path: Path
) -> None:
    with unix.bind(tmp_path / "up.sock"):
        async with kind(f"unix://{tmp_path}/up.sock", owner_uid=12345) as upstream:
            with pytest.raises(AlcoveError) as caught:
                await upstream.open(GET)
    assert caught.value.code == "unavailable"


async def test_open_is_a_timeout_when_the_first_byte_does_not_come(
    kind: Kind, tmp_path: Path
) -> None:
    async def handler(reader: asyncio.StreamReader, _: object, __: bytes) -> None:
        await reader.read(1)

    async with raw_upstream(kind, tmp_path, handler, Timeouts(first_byte_s=0.05)) as (
        raw,
        upstream,
    ):
        with pytest.raises(AlcoveError) as caught:
            await upstream.open(GET)
        await until(lambda: raw.closed == 1)
    assert (caught.value.code, caught.value.reason) == ("timeout", "first_byte")


async def test_chunks_are_a_timeout_when_the_stream_falls_silent(
    kind: Kind, tmp_path: Path
) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: bytes) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await writer.drain()
        await reader.read(1)

    async with raw_upstream(kind, tmp_path, handler, Timeouts(idle_s=0.05)) as (raw, upstream):
        with pytest.raises(AlcoveError) as caught:
            await body_of(upstream)
        await until(lambda: raw.closed == 1)
    assert (caught.value.code, caught.value.reason) == ("timeout", "idle")


async def test_upstream_sees_the_end_when_the_reader_is_cancelled(
    kind: Kind, tmp_path: Path
) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: bytes) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await writer.drain()
        if not await reader.read(1):
            raise ConnectionError

    async with raw_upstream(kind, tmp_path, handler) as (raw, upstream):
        reading = asyncio.create_task(body_of(upstream))
        await until(lambda: raw.heads)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await until(lambda: raw.closed == 1)


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
