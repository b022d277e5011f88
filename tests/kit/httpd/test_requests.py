"""Requests and answers over a real socket: bodies, order, keep-alive, and what the handler may do."""

import asyncio
from pathlib import Path

import pytest

from infra.kit import httpd
from infra.kit.errors import AlcoveError
from tests.kit.httpd.wire import GET, echo, listening
from tests.waiting import stretch, until

CHUNKED = (
    b"POST /c HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n"
    b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nt: u\r\n\r\n"
)
SIZED = b"POST /s HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nhello"


async def test_connection_stays_when_requests_follow_each_other(tmp_path: Path) -> None:
    async with listening(tmp_path, echo) as there, there.client() as client:
        for _ in range(3):
            client.send(SIZED)
            reply = await client.reply()
            assert (reply.status, reply.body) == (200, b"hello")
            assert "connection" not in reply.headers
            assert reply.headers["date"].endswith("GMT")
            client.send(CHUNKED)
            assert (await client.reply()).body == b"abcde"
        assert there.listener.connections == 1


async def test_trailer_is_not_taken_for_a_header_when_requests_follow(tmp_path: Path) -> None:
    seen: list[list[tuple[str, str]]] = []

    async def handler(request: httpd.Request) -> None:
        await request.body()
        seen.append(list(request.headers))
        await request.respond(204)

    async with listening(tmp_path, handler) as there, there.client() as client:
        client.send(CHUNKED + GET)
        await client.reply()
        await client.reply()
    assert seen == [[("host", "h"), ("transfer-encoding", "chunked")], [("host", "h")]]


async def test_requests_are_served_one_by_one_when_they_are_pipelined(tmp_path: Path) -> None:
    running, most, order = 0, 0, []

    async def handler(request: httpd.Request) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        order.append((request.target, await request.body()))
        running -= 1
        await request.respond(200, (), request.target.encode())

    async with listening(tmp_path, handler) as there, there.client() as client:
        client.send(SIZED + GET + CHUNKED + SIZED)
        assert [(await client.reply()).body for _ in range(4)] == [b"/s", b"/x", b"/c", b"/s"]
    assert most == 1
    assert order == [("/s", b"hello"), ("/x", b""), ("/c", b"abcde"), ("/s", b"hello")]


async def test_connection_is_closed_when_too_much_is_pipelined(tmp_path: Path) -> None:
    async with listening(tmp_path, echo) as there, there.client() as client:
        client.send(GET * 200)
        statuses = []
        for _ in range(200):
            statuses.append((await client.reply()).status)
            if statuses[-1] != 200:
                break
        assert statuses[-1] == 429
        assert len(statuses) < 200
        assert await client.ended()


async def test_connection_closes_when_asked_to(tmp_path: Path) -> None:
    async with listening(tmp_path, echo) as there:
        for ask in (
            b"GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n",
            b"GET / HTTP/1.0\r\nhost: h\r\n\r\n",
            b"GET / HTTP/1.0\r\nhost: h\r\nconnection: keep-alive\r\n\r\n",
        ):
            async with there.client() as client:
                client.send(ask)
                assert (await client.reply()).headers["connection"] == "close"
                assert await client.ended()


async def test_body_is_asked_for_when_the_client_waits(tmp_path: Path) -> None:
    ask = b"POST / HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n"
    async with listening(tmp_path, echo) as there, there.client() as client:
        client.send(ask)
        assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(b"hello")
        assert (await client.reply()).body == b"hello"


async def test_body_is_not_asked_for_when_the_handler_refuses(tmp_path: Path) -> None:
    async def handler(request: httpd.Request) -> None:
        raise AlcoveError("unauthorized", "who are you?")

    ask = b"POST / HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n"
    async with listening(tmp_path, handler) as there, there.client() as client:
        client.send(ask)
        reply = await client.reply()
        assert (reply.status, reply.headers["connection"], client.interim) == (401, "close", [])
        assert await client.ended()


async def test_refusal_is_read_when_the_client_still_sends(tmp_path: Path) -> None:
    async def handler(request: httpd.Request) -> None:
        raise AlcoveError("forbidden", "no")

    async with listening(tmp_path, handler) as there, there.client() as client:
        client.send(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 3000000\r\n\r\n")
        client.send(b"x" * 3_000_000)
        assert (await client.reply()).status == 403


async def test_answer_is_coded_when_the_handler_raises(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(request: httpd.Request) -> None:
        if request.target == "/coded":
            raise AlcoveError("rate_limited", "slower", retry_after_s=7)
        if request.target == "/broken":
            raise RuntimeError("a detail that must stay inside")

    async with listening(tmp_path, handler) as there, there.client() as client:
        client.send(b"GET /coded HTTP/1.1\r\nhost: h\r\n\r\n")
        reply = await client.reply()
        assert (reply.status, reply.headers["retry-after"]) == (429, "7")
        for target in ("broken", "silent"):
            client.send(f"GET /{target} HTTP/1.1\r\nhost: h\r\n\r\n".encode())
            reply = await client.reply()
            assert reply.status == 500
            assert b"detail" not in reply.body
    assert [record.message for record in caplog.records] == ["a handler failed"] * 2


async def test_answer_streams_when_it_is_written_in_pieces(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def handler(request: httpd.Request) -> None:
        await request.start(200, [("content-type", "text/event-stream")])
        await go_on.wait()
        await request.write(b"one")
        await request.write(b"two")

    async with listening(tmp_path, handler) as there, there.client() as client:
        client.send(GET)
        head = await client.reader.readuntil(b"\r\n\r\n")
        assert b"transfer-encoding: chunked" in head
        go_on.set()
        rest = await client.reader.readuntil(b"0\r\n\r\n")
        assert rest == b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
        client.send(GET)
        assert (await client.reply()).body == b"onetwo"


@pytest.mark.parametrize("pieces", [[b"hel"], [b"hello", b"!"], []])
async def test_answer_is_cut_when_it_is_not_as_long_as_announced(
    tmp_path: Path, pieces: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(request: httpd.Request) -> None:
        await request.start(200, [("content-length", "5")])
        for piece in pieces:
            await request.write(piece)

    async with listening(tmp_path, handler) as there, there.client() as client:
        client.send(GET * 2)
        seen = await client.reader.read(10_000)
        assert seen.count(b"HTTP/1.1") == 1
        assert not seen.endswith(b"!")
        assert await client.ended()
    assert caplog.records


async def test_stream_is_cut_when_the_handler_fails_midway(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(request: httpd.Request) -> None:
        await request.start(200)
        await request.write(b"half")
        raise AlcoveError("bad_gateway", "the answer broke off")

    async with listening(tmp_path, handler) as there, there.client() as client:
        client.send(GET)
        with pytest.raises(asyncio.IncompleteReadError):
            await client.reply()


async def test_body_ends_with_the_connection_when_the_client_speaks_1_0(tmp_path: Path) -> None:
    async def handler(request: httpd.Request) -> None:
        await request.start(200)
        await request.write(b"one")
        await request.write(b"two")

    async with listening(tmp_path, handler) as there:
        reply = await there.ask(b"GET / HTTP/1.0\r\nhost: h\r\n\r\n")
        assert reply.body == b"onetwo"
        assert "transfer-encoding" not in reply.headers


async def test_header_splits_no_answer_when_it_holds_line_ends(tmp_path: Path) -> None:
    async def handler(request: httpd.Request) -> None:
        await request.respond(200, [("x", "a\r\nset-cookie: b")])

    async with listening(tmp_path, handler) as there:
        reply = await there.ask()
    assert "set-cookie" not in reply.headers
    assert reply.status == 400


async def test_unread_body_does_not_become_a_request_when_ignored(tmp_path: Path) -> None:
    served: list[str] = []

    async def handler(request: httpd.Request) -> None:
        served.append(request.target)
        await request.respond(204)

    hidden = b"GET /hidden HTTP/1.1\r\nhost: h\r\n\r\n"
    async with listening(tmp_path, handler) as there, there.client() as client:
        client.send(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n" % (len(hidden) + 1))
        await client.reply()
        client.send(hidden)
        assert await client.ended()
    assert served == ["/"]


async def test_upload_is_held_back_when_the_handler_is_slow(tmp_path: Path) -> None:
    size, go_on, seen = 8_000_000, asyncio.Event(), 0

    async def handler(request: httpd.Request) -> None:
        nonlocal seen
        await go_on.wait()
        while chunk := await request.read():
            assert len(chunk) < 1_000_000
            seen += len(chunk)
        await request.respond(204)

    async with listening(tmp_path, handler) as there, there.client() as client:
        client.send(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n" % size)
        client.send(bytes(size))
        transport = client.writer.transport
        sent_at_first = size - transport.get_write_buffer_size()
        await until(lambda: there.listener.connections == 1)
        assert sent_at_first < 2_000_000
        go_on.set()
        assert (await client.reply()).status == 204
    assert seen == size


async def test_client_is_held_back_when_it_sends_ahead_of_its_answers(tmp_path: Path) -> None:
    go_on, count = asyncio.Event(), 100

    async def handler(request: httpd.Request) -> None:
        await go_on.wait()
        await request.respond(204)

    ask = b"GET / HTTP/1.1\r\nhost: h\r\nx: " + b"y" * 20_000 + b"\r\n\r\n"
    async with listening(tmp_path, handler) as there, there.client() as client:
        transport, left = client.writer.transport, -1
        for _ in range(count):
            client.send(ask)
        while transport.get_write_buffer_size() != left:
            left = transport.get_write_buffer_size()
            await stretch(0.05)
        assert left > count * len(ask) // 2
        go_on.set()
        for _ in range(count):
            assert (await client.reply()).status == 204
