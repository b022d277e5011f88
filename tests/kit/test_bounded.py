"""uvicorn within bounds, over a real socket: what a stranger may send, and for how long."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fastapi import FastAPI, Request, Response
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse

from infra.kit import service
from infra.kit.httpd.limits import Limits

pytestmark = pytest.mark.thorough

QUICK = Limits(head_s=0.2, body_s=0.2, write_s=0.2, head_bytes=2000)
PATIENT = Limits(head_bytes=2000)
HEAD = b"POST /echo HTTP/1.1\r\nHost: x\r\n"


class Served:
    """A server and what its app noticed."""

    def __init__(self) -> None:
        self.port = 0
        self.left = asyncio.Event()
        self.headers: list[str] = []

    def app(self) -> FastAPI:
        """Echoes bodies, and answers without end."""
        app = FastAPI(openapi_url=None)

        @app.post("/echo")
        async def echo(request: Request) -> Response:
            self.headers = list(request.headers)
            try:
                return Response(await request.body())
            except ClientDisconnect:
                self.left.set()
                raise

        @app.post("/deaf")
        async def deaf() -> Response:
            return Response("no")

        @app.get("/endless")
        async def endless() -> Response:
            async def body() -> AsyncIterator[bytes]:
                try:
                    while True:
                        yield b"x" * 65536
                        await asyncio.sleep(0)  # where nothing is sent any more, nothing waits
                finally:
                    self.left.set()

            return StreamingResponse(body())

        return app

    async def talk(self, *parts: bytes) -> bytes:
        """All that comes back for `parts`, each sent by itself, until the server closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
            async with asyncio.timeout(10):
                return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()


@asynccontextmanager
async def served(limits: Limits) -> AsyncIterator[Served]:
    """One server within `limits`."""
    made = Served()
    async with service.serving(made.app(), "http://127.0.0.1:0", limits=limits, grace_s=1) as url:
        made.port = int(url.rpartition(":")[2])
        yield made


async def test_request_is_answered_when_it_keeps_within_its_bounds() -> None:
    async with served(PATIENT) as server:
        first = HEAD + b"Content-Length: 3000\r\n\r\n"
        last = HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\nhi"
        answer = await server.talk(first, b"x" * 2000, b"x" * 1000, last)
    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.endswith(b"hi")


@pytest.mark.parametrize(
    "endless",
    [b"X-A: b\r\n", b"X-A: " + b"b" * 100, b"\r\n"],
    ids=["headers", "one header", "blank lines"],
)
async def test_connection_is_closed_when_its_head_has_no_end(endless: bytes) -> None:
    async with served(PATIENT) as server:
        answer = await server.talk(HEAD if endless.strip() else b"", *[endless * 50] * 60)
    assert b" 200 " not in answer


@pytest.mark.parametrize(
    "sent", [b"", b"\r\n", b"GET /", HEAD], ids=["none", "blank", "bit", "head"]
)
async def test_connection_is_closed_when_its_head_is_late(sent: bytes) -> None:
    async with served(QUICK) as server:
        assert await server.talk(sent) == b""


async def test_connection_is_closed_when_the_next_head_is_late() -> None:
    async with served(QUICK) as server:
        answer = await server.talk(HEAD + b"Content-Length: 2\r\n\r\nhi", b"GET /")
    assert answer.endswith(b"hi")


async def test_app_hears_of_it_when_a_body_is_late() -> None:
    async with served(QUICK) as server:
        assert await server.talk(HEAD + b"Content-Length: 9\r\n\r\nhi") == b""
        async with asyncio.timeout(5):
            await server.left.wait()


async def test_answer_reaches_a_caller_who_still_sends() -> None:
    async with served(PATIENT) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        try:
            writer.write(b"POST /deaf HTTP/1.1\r\nHost: x\r\nContent-Length: 400000\r\n\r\n")
            assert await reader.readuntil(b"\r\n\r\nno") != b""
            writer.write(b"x" * 400_000)
            writer.write(HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\nhi")
            async with asyncio.timeout(10):
                assert (await reader.read()).endswith(b"hi")
        finally:
            writer.close()


@pytest.mark.parametrize("sent", [b"x", b"x" * 9], ids=["half a body", "a body and no more"])
async def test_connection_is_closed_when_nothing_comes_after_an_early_answer(sent: bytes) -> None:
    async with served(QUICK) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        try:
            writer.write(b"POST /deaf HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
            await reader.readuntil(b"\r\n\r\nno")
            writer.write(sent)
            async with asyncio.timeout(3):  # uvicorn by itself would wait for longer
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
        finally:
            writer.close()


async def test_trailer_is_no_header_when_it_comes_with_the_head() -> None:
    trailer = b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n"
    async with served(PATIENT) as server:
        assert b" 200 " in await server.talk(HEAD + trailer)
    assert "x-forwarded-for" not in server.headers


async def test_app_hears_of_it_when_a_reader_takes_nothing() -> None:
    async with served(QUICK) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
        try:
            writer.write(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readexactly(8)
            async with asyncio.timeout(5):
                await server.left.wait()
        finally:
            writer.close()
