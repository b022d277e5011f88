"""Endings that are not the end of an answer: broken, silent, nobody there, given up; over both implementations."""

import asyncio
from pathlib import Path

import pytest

from infra.kit import unix
from infra.kit.errors import AlcoveError
from infra.kit.relay import Timeouts
from tests.kit.relay.raw import GET, Kind, body_of, raw_upstream
from tests.waiting import until


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
