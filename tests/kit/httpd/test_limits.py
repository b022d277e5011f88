"""What one client may take, and what happens to its neighbours meanwhile."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from infra.kit import httpd, unix
from infra.kit.http1.inflow import HIGH_WATER_BYTES
from tests.kit.httpd.wire import GET, echo, listening
from tests.waiting import until


async def trusting(request: httpd.Request) -> None:
    """Takes everybody at their word."""
    request.trust()
    await echo(request)


async def test_head_is_431_when_it_is_too_long_or_has_too_many_headers(tmp_path: Path) -> None:
    async with listening(tmp_path, echo) as there:
        for filler in (b"x: y\r\n" * 101, b"x: " + b"y" * 33_000 + b"\r\n", b"x: " + b"y" * 90_000):
            reply = await there.ask(b"GET / HTTP/1.1\r\nhost: h\r\n" + filler + b"\r\n")
            assert reply.status == 431
        long_target = b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nhost: h\r\n\r\n"
        assert (await there.ask(long_target)).status == 431
        most = b"GET / HTTP/1.1\r\nhost: h\r\n" + b"x: y\r\n" * 99 + b"\r\n"
        assert (await there.ask(most)).status == 200


@pytest.mark.parametrize("tail", [b"0\r\nt: " + b"u" * 600_000, b"1;" + b"x" * 600_000])
async def test_body_is_refused_when_its_framing_never_ends(tail: bytes, tmp_path: Path) -> None:
    async with listening(tmp_path, echo) as there:
        head = b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n"
        assert (await there.ask(head + tail)).status == 400


async def test_body_is_413_when_it_is_too_long(tmp_path: Path) -> None:
    async with listening(tmp_path, echo, httpd.Limits(body_bytes=10)) as there:
        for body in (
            b"content-length: 11\r\n\r\n",
            b"content-length: 11\r\nexpect: 100-continue\r\n\r\n",
            b"transfer-encoding: chunked\r\n\r\n6\r\nabcdef\r\n5\r\nabcde\r\n",
        ):
            async with there.client() as client:
                client.send(b"POST / HTTP/1.1\r\nhost: h\r\n" + body)
                assert (await client.reply()).status == 413
                assert client.interim == []
                assert await client.ended()
        reply = await there.ask(
            b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 10\r\n\r\n0123456789"
        )
        assert reply.status == 200


async def test_body_is_503_when_all_listeners_hold_too_much(tmp_path: Path) -> None:
    capacity = httpd.Capacity(body_bytes=HIGH_WATER_BYTES)
    go_on = asyncio.Event()

    async def handler(request: httpd.Request) -> None:
        await request.body()
        await go_on.wait()
        await request.respond(204)

    ask = b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 40000\r\n\r\n" + bytes(40_000)
    async with listening(tmp_path, handler, capacity=capacity) as there:
        async with there.client() as first:
            first.send(ask)
            await until(lambda: capacity.body_bytes == 40_000)
            reply = await there.ask(ask)
            assert (reply.status, reply.headers["retry-after"]) == (503, "1")
            go_on.set()
            assert (await first.reply()).status == 204
        assert (await there.ask(ask)).status == 204


async def test_stranger_is_503_when_too_many_have_proved_nothing(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        there = await stack.enter_async_context(
            listening(tmp_path, trusting, httpd.Limits(unproven=3))
        )
        known = await stack.enter_async_context(there.client())
        known.send(GET)
        assert (await known.reply()).status == 200
        assert there.listener.unproven == 0
        silent = [await stack.enter_async_context(there.client()) for _ in range(3)]
        await until(lambda: there.listener.unproven == 3)
        refused = await there.ask()  # before it could say whether it asks for more than a head
        assert (refused.status, refused.body) == (503, b"")
        known.send(GET)
        assert (await known.reply()).status == 200
        silent[0].close()
        await until(lambda: there.listener.unproven == 2)
        assert (await there.ask()).status == 200


async def test_connection_is_503_when_the_process_has_too_many(tmp_path: Path) -> None:
    capacity = httpd.Capacity(connections=2)
    other = tmp_path / "other"
    other.mkdir()
    async with (
        listening(tmp_path, echo, capacity=capacity) as here,
        listening(other, echo, capacity=capacity) as there,
        here.client() as first,
        there.client(),
    ):
        await until(lambda: capacity.connections == 2)
        assert (await there.ask()).status == 503
        first.close()
        await until(lambda: capacity.connections == 1)
        assert (await there.ask()).status == 200


async def test_connection_is_closed_when_it_says_nothing(tmp_path: Path) -> None:
    async with (
        listening(tmp_path, echo, httpd.Limits(head_s=0.05, idle_s=0.05)) as there,
        there.client() as silent,
        there.client() as idle,
    ):
        idle.send(GET)
        assert (await idle.reply()).status == 200
        assert await silent.ended()
        assert await idle.ended()


async def test_head_is_408_when_it_drips(tmp_path: Path) -> None:
    async with (
        listening(tmp_path, echo, httpd.Limits(head_s=0.2)) as there,
        there.client() as client,
    ):
        client.send(GET + b"G")
        assert (await client.reply()).status == 200
        dripping = asyncio.create_task(_drip(client.writer))
        assert (await client.reply()).status == 408
        dripping.cancel()
        assert await client.ended()


async def _drip(writer: asyncio.StreamWriter) -> None:
    for byte in b"ET /a-path-that-is-long-enough-for-the-test HTTP/1.1":
        writer.write(bytes([byte]))
        await asyncio.sleep(0.02)


async def test_body_is_400_when_it_drips(tmp_path: Path) -> None:
    async with (
        listening(tmp_path, echo, httpd.Limits(body_s=0.1)) as there,
        there.client() as client,
    ):
        client.send(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 9999\r\n\r\n")
        dripping = asyncio.create_task(_drip(client.writer))
        reply = await client.reply()
        assert (reply.status, b"slow_body" in reply.body) == (400, True)
        dripping.cancel()


async def test_client_is_dropped_when_it_takes_nothing(tmp_path: Path) -> None:
    ended: list[BaseException] = []

    async def handler(request: httpd.Request) -> None:
        await request.start(200)
        try:
            while True:
                await request.write(bytes(65_536))
        except BaseException as error:
            ended.append(error)
            raise

    async with (
        listening(tmp_path, handler, httpd.Limits(write_s=0.1)) as there,
        there.client() as client,
    ):
        client.writer.transport.pause_reading()
        client.send(GET)
        await until(lambda: ended)
        await until(lambda: there.listener.connections == 0)
    assert isinstance(ended[0], asyncio.CancelledError)


async def test_listener_can_be_bound_again_when_one_was_closed(tmp_path: Path) -> None:
    for _ in range(3):
        async with listening(tmp_path, echo) as there:
            assert (await there.ask()).status == 200
        with pytest.raises(unix.NotConnected):
            await unix.open_stream(there.path)
