"""An answer that is pushed on part by part, over both implementations: in order, nothing lost, errors told."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from tests.kit.relay.raw import GET, OK, Kind, answers, raw_upstream
from tests.waiting import until


class Bucket:
    """Takes parts; with `one_by_one`, no more than one at a time."""

    def __init__(self, *, one_by_one: bool = False) -> None:
        self.taken: list[bytes] = []
        self._one_by_one = one_by_one

    def take(self, part: bytes) -> bool:
        self.taken.append(part)
        return not self._one_by_one


async def test_parts_are_pushed_when_they_arrive(kind: Kind, tmp_path: Path) -> None:
    bucket = Bucket()

    async def handler(_: object, writer: asyncio.StreamWriter, __: bytes) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for n in range(3):
            await until(partial(_has, bucket, n))
            writer.write(b"1\r\n%d\r\n" % n)
        writer.write(b"0\r\n\r\n")

    async with raw_upstream(kind, tmp_path, handler) as (raw, upstream):
        for _ in range(2):
            bucket.taken.clear()
            response = await upstream.open(GET)
            assert await response.push(bucket.take)
            await response.close()
            assert bucket.taken == [b"0", b"1", b"2"]
        assert raw.connections == 1


async def test_nothing_is_lost_when_who_is_pushed_at_stops(kind: Kind, tmp_path: Path) -> None:
    bucket = Bucket(one_by_one=True)

    async def handler(_: object, writer: asyncio.StreamWriter, __: bytes) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n")
        for n in range(3):
            writer.write(b"%d" % n)
            await writer.drain()
            await until(partial(_has, bucket, n + 1))

    async with raw_upstream(kind, tmp_path, handler) as (_, upstream):
        response = await upstream.open(GET)
        rounds = 1
        while not await response.push(bucket.take):
            rounds += 1
        await response.close()
    assert b"".join(bucket.taken) == b"012"
    assert rounds == 4


def _has(bucket: Bucket, count: int) -> bool:
    return len(bucket.taken) == count


async def test_its_own_error_is_raised_when_who_is_pushed_at_fails(
    kind: Kind, tmp_path: Path
) -> None:
    def fails(_: bytes) -> bool:
        raise ValueError("enough")

    async with raw_upstream(kind, tmp_path, answers(OK)) as (_, upstream):
        response = await upstream.open(GET)
        with pytest.raises(ValueError, match="enough"):
            await response.push(fails)
        await response.close()
