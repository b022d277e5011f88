"""The service base over a real socket: coded errors cross the wire, streams arrive as they are sent."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fastapi import Depends, FastAPI, Request
from fastapi.responses import StreamingResponse

from infra.kit import service, sse, unix
from infra.kit.client import Patience, ServiceClient
from infra.kit.errors import AlcoveError
from infra.kit.metrics import Metrics
from infra.kit.relay import RelayRequest
from infra.kit.tracing import Tracing
from tests.kit.relay.over_aiohttp import HttpUpstream
from tests.waiting import until

pytestmark = pytest.mark.thorough


def an_app() -> FastAPI:
    app = FastAPI(openapi_url=None)
    service.install(app, metrics=Metrics("test"), tracing=Tracing("test"))
    secret = Depends(service.require_secret("s3cret"))

    @app.get("/refuses", dependencies=[secret])
    async def refuses() -> None:
        raise AlcoveError("conflict", "somebody was first", reason="taken", by="x")

    @app.get("/breaks", dependencies=[secret])
    async def breaks() -> None:
        raise RuntimeError("a detail that must stay inside")

    @app.post("/reads", dependencies=[secret])
    async def reads(request: Request) -> dict[str, int]:
        return {"bytes": len(await request.body())}

    @app.get("/ticks", dependencies=[secret])
    async def ticks() -> StreamingResponse:
        async def body() -> AsyncIterator[bytes]:
            for n in range(3):
                yield sse.frame(str(n), event_id=str(n))
                await asyncio.sleep(0)

        return StreamingResponse(body(), media_type="text/event-stream")

    return app


@pytest.fixture(params=["unix", "tcp"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ServiceClient]:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    url = f"unix://{deep}/s.sock" if request.param == "unix" else "http://127.0.0.1:0"
    async with service.serving(an_app(), url) as bound:
        client = ServiceClient(bound, "s3cret", name="test service")
        yield client
        await client.close()


async def test_error_keeps_code_and_details_when_it_crosses_the_wire(client: ServiceClient) -> None:
    with pytest.raises(AlcoveError) as caught:
        await client.call("GET", "/refuses")
    assert (caught.value.code, caught.value.reason) == ("conflict", "taken")
    assert caught.value.details["by"] == "x"


async def test_exception_tells_nothing_of_itself_when_a_handler_breaks(
    client: ServiceClient,
) -> None:
    with pytest.raises(AlcoveError) as caught:
        await client.call("GET", "/breaks")
    assert caught.value.code == "internal"
    assert "detail" not in caught.value.message


async def test_call_is_refused_when_the_secret_is_wrong(client: ServiceClient) -> None:
    stranger = ServiceClient(client._url, "other", name="test service")
    with pytest.raises(AlcoveError) as caught:
        await stranger.call("GET", "/refuses")
    await stranger.close()
    assert caught.value.code == "unauthorized"


async def test_events_arrive_in_order_when_streamed(client: ServiceClient) -> None:
    seen = [(event.id, event.data) async for event in client.events("/ticks")]
    assert seen == [("0", "0"), ("1", "1"), ("2", "2")]


async def test_call_is_unavailable_when_nobody_listens(tmp_path: Path) -> None:
    client = ServiceClient(f"unix://{tmp_path}/none.sock", "s", name="ghost")
    with pytest.raises(AlcoveError) as caught:
        await client.call("GET", "/livez", timeout_s=2)
    await client.close()
    assert (caught.value.code, caught.value.reason) == ("unavailable", "unreachable")


@pytest.mark.slow  # measures time
async def test_hung_service_costs_one_long_wait_until_it_answers_again(tmp_path: Path) -> None:
    app, awake = an_app(), asyncio.Event()

    @app.get("/sleeps")
    async def sleeps() -> dict[str, str]:
        await awake.wait()
        return {}

    url, patience = f"unix://{tmp_path}/s.sock", Patience(0.5, 0.05, 60)
    client = ServiceClient(url, "s3cret", name="test service", patience=patience)
    loop = asyncio.get_running_loop()

    async def waited_s() -> float:
        began_s = loop.time()
        with pytest.raises(AlcoveError) as caught:
            await client.call("GET", "/sleeps")
        assert caught.value.code == "timeout"
        return loop.time() - began_s

    async with service.serving(app, url, grace_s=0):
        assert await waited_s() >= 0.5
        assert await waited_s() < 0.45
        await client.call("GET", "/livez")
        assert await waited_s() >= 0.5
        awake.set()
        await client.call("GET", "/livez", timeout_s=5)
        assert await client.call("GET", "/sleeps") == {}
    await client.close()


async def test_relay_gives_the_same_bytes_and_reuses_its_connection(client: ServiceClient) -> None:
    headers = [("host", "x"), ("authorization", "Bearer s3cret")]
    async with HttpUpstream(client._url) as upstream:
        for _ in range(3):
            response = await upstream.open(RelayRequest("GET", "/ticks", headers))
            body = b"".join([chunk async for chunk in response.chunks()])
            await response.close()
            assert body == b"id: 0\ndata: 0\n\nid: 1\ndata: 1\n\nid: 2\ndata: 2\n\n"
        connector = upstream._session.connector
        assert connector is not None
        assert sum(len(pool) for pool in connector._conns.values()) == 1


async def test_no_error_is_logged_when_the_caller_leaves_in_its_body(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with service.serving(an_app(), f"unix://{tmp_path}/s.sock") as url:
        _, writer = await unix.open_stream(Path(url.removeprefix("unix://")))
        head = b"POST /reads HTTP/1.1\r\nhost: x\r\nauthorization: Bearer s3cret\r\n"
        writer.write(head + b"content-length: 100\r\n\r\nbegun")
        await writer.drain()
        writer.close()
        await until(lambda: "request" in [record.message for record in caplog.records])
    assert [r.message for r in caplog.records if r.levelname == "ERROR"] == []
    [line] = [record for record in caplog.records if record.message == "request"]
    assert vars(line)["status"] == 499
