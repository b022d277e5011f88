"""Clients that leave, and servers that stop: nobody is forgotten, nothing is cut that could end well."""

import asyncio
from pathlib import Path

from infra.kit import httpd
from tests.kit.httpd.wire import GET, echo, listening
from tests.waiting import until


async def test_handler_is_cancelled_when_the_client_leaves(tmp_path: Path) -> None:
    events: list[str] = []

    async def handler(request: httpd.Request) -> None:
        events.append("began")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            events.append("cancelled")
            raise
        finally:
            await asyncio.sleep(0)
            events.append("cleaned up")

    async with listening(tmp_path, handler) as there:
        async with there.client() as client:
            client.send(GET)
            await until(lambda: events)
        await until(lambda: there.listener.connections == 0)
    assert events == ["began", "cancelled", "cleaned up"]


async def test_handler_is_cancelled_when_the_client_leaves_in_mid_stream(tmp_path: Path) -> None:
    written, ended = 0, asyncio.Event()

    async def handler(request: httpd.Request) -> None:
        nonlocal written
        await request.start(200)
        try:
            while True:
                await request.write(bytes(10_000))
                written += 10_000
                await asyncio.sleep(0)
        finally:
            ended.set()

    async with listening(tmp_path, handler) as there:
        async with there.client() as client:
            client.send(GET)
            await client.reader.read(1)
        await until(ended.is_set)
    assert written


async def test_handler_is_cancelled_when_the_client_leaves_in_mid_upload(tmp_path: Path) -> None:
    ended: list[BaseException] = []

    async def handler(request: httpd.Request) -> None:
        try:
            await request.body()
        except BaseException as error:
            ended.append(error)
            raise

    async with listening(tmp_path, handler) as there:
        async with there.client() as client:
            client.send(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\nabc")
            await until(lambda: there.listener.capacity.body_bytes == 3)
        await until(lambda: ended)


async def test_handler_may_finish_when_the_client_leaves_after_a_whole_answer(
    tmp_path: Path,
) -> None:
    settled = False

    async def handler(request: httpd.Request) -> None:
        nonlocal settled
        await request.start(200, [("content-length", "2")])
        await request.write(b"ok")
        request.end()
        await until(lambda: there.listener.connections == 0 or client.writer.is_closing())
        await asyncio.sleep(0.02)
        settled = True

    async with listening(tmp_path, handler) as there:
        async with there.client() as client:
            client.send(GET)
            assert (await client.reply()).body == b"ok"
        await until(lambda: settled)
        await until(lambda: there.listener.connections == 0)


async def test_answer_under_way_ends_when_the_server_stops(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def handler(request: httpd.Request) -> None:
        await go_on.wait()
        await request.respond(200, (), b"in time")

    async with (
        listening(tmp_path, handler) as there,
        there.client() as busy,
        there.client() as idle,
    ):
        busy.send(GET)
        await until(lambda: there.listener.connections == 2)
        closing = asyncio.create_task(there.listener.close(grace_s=5))
        assert await idle.ended()
        assert not closing.done()
        go_on.set()
        reply = await busy.reply()
        assert (reply.body, reply.headers["connection"]) == (b"in time", "close")
        await closing


async def test_answer_under_way_is_cut_when_the_grace_is_over(tmp_path: Path) -> None:
    cleaned_up = False

    async def handler(request: httpd.Request) -> None:
        nonlocal cleaned_up
        await request.start(200)
        await request.write(b"half")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            cleaned_up = True

    async with listening(tmp_path, handler) as there, there.client() as client:
        client.send(GET)
        await client.reader.readuntil(b"half\r\n")
        await there.listener.close(grace_s=0.05)
        assert cleaned_up
        assert await client.ended()


async def test_nothing_is_left_when_many_clients_come_and_go(tmp_path: Path) -> None:
    async with listening(tmp_path, echo) as there:
        before = len(asyncio.all_tasks())
        for turn in range(60):
            async with there.client() as client:
                client.send(GET[: turn % 20] if turn % 3 else GET)
                if turn % 3 == 0:
                    assert (await client.reply()).status == 200
        await until(lambda: there.listener.connections == 0)
        await until(lambda: len(asyncio.all_tasks()) == before)
