"""Answers that are a head alone: what followed one would be read as the next answer."""

from pathlib import Path

from infra.kit import httpd
from infra.kit.errors import AlcoveError
from tests.kit.httpd.wire import listening


async def test_answer_has_no_body_when_none_is_allowed(tmp_path: Path) -> None:
    async def handler(request: httpd.Request) -> None:
        status = int(request.target[1:])
        if request.method == "GET":
            await request.respond(status, (), b"no")
            return
        await request.start(status, [("content-length", "2")])
        await request.write(b"no")

    async with listening(tmp_path, handler) as there, there.client() as client:
        for method, status, length in (
            (b"HEAD", 200, "2"),
            (b"HEAD", 404, "2"),
            (b"GET", 204, None),
            (b"GET", 304, None),
        ):
            client.send(b"%b /%d HTTP/1.1\r\nhost: h\r\n\r\n" % (method, status))
            reply = await client.reply(bodiless=True)
            assert (reply.status, reply.headers.get("content-length")) == (status, length)
        client.send(b"GET /200 HTTP/1.1\r\nhost: h\r\n\r\n")
        assert (await client.reply()).body == b"no"


async def test_head_is_answered_by_a_head_alone_whatever_its_handler_does(tmp_path: Path) -> None:
    async def handler(request: httpd.Request) -> None:
        match request.target:
            case "/raises":
                raise AlcoveError("not_found", "there is no such thing")
            case "/fails":
                raise RuntimeError
            case "/odd":
                await request.respond(200, [("Transfer-Encoding", "chunked")], b"no")
            case "/streams":
                await request.start(200)
                await request.write(b"HTTP/1.1 200 OK\r\n\r\n")
            case _:
                await request.start(200, [("transfer-encoding", "chunked")])
                await request.write(b"no")
                request.end()

    async with listening(tmp_path, handler) as there, there.client() as client:
        for path in ("raises", "odd", "streams", "chunks", "fails"):
            client.send(b"HEAD /%b HTTP/1.1\r\nhost: h\r\n\r\n" % path.encode())
            reply = await client.reply(bodiless=True)
            assert not ("content-length" in reply.headers and "transfer-encoding" in reply.headers)
        assert reply.status == 500
        client.send(b"GET /odd HTTP/1.1\r\nhost: h\r\n\r\n")
        assert (await client.reply()).body == b"no"
