"""`/connections/{id}/…`: the token goes to its own origin and nowhere else, and the caller never sees it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from infra.kit.errors import AlcoveError
from infra.kit.seal import Sealer
from metering_proxy import wire
from metering_proxy.egress.connections import origin
from metering_proxy.resealing import reseal
from tests.metering_proxy.egress.connected import NAME, TOKEN, Origin, There, call
from tests.metering_proxy.egress.outdoors import STAND_IN, counted
from tests.waiting import until


async def test_token_is_added_and_nothing_of_the_caller_passes_that_tells_who_it_is(
    there: There, service: Origin
) -> None:
    status, headers, body = await call(
        there.mine,
        "/connections/hub/repos/a%2Fb//c?q=%20+&q=2&&x",
        "POST",
        data=b"\x00 raw \xff",
        headers={
            "x-api-key": there.mine.key,
            "cookie": "session=1",
            "proxy-authorization": f"Bearer {there.mine.key}",
            "traceparent": "00-1-2-03",
            "x-forwarded-for": "10.0.0.1",
            "x-alcove-anything": "1",
            "x-note": f"my key is {there.mine.key}",
            "connection": "keep-alive, x-hop",
            "x-hop": "1",
            "mcp-session-id": "s-1",
            "content-type": "application/x-any",
        },
    )
    assert (status, body, headers["x-theirs"]) == (200, b"ok", "yes")
    assert "set-cookie" not in headers
    assert "x-alcove-request-id" in headers
    head, sent = service.heads[-1], service.bodies[-1]
    assert head.startswith(b"POST /repos/a%2Fb//c?q=%20+&q=2&&x HTTP/1.1\r\n")
    assert sent == b"\x00 raw \xff"
    assert service.header("authorization") == [f"Bearer {TOKEN}"]
    assert service.header("host") == [f"{NAME}:{service.port}"]
    assert service.header("mcp-session-id") == ["s-1"]
    assert service.header("content-type") == ["application/x-any"]
    assert there.mine.key.encode() not in head
    for name in (
        "x-api-key", "cookie", "proxy-authorization", "traceparent", "x-forwarded-for",
        "x-alcove-anything", "x-note", "x-hop",
    ):  # fmt: skip
        assert service.header(name) == [], name


async def test_redirect_is_passed_on_and_never_followed(there: There, service: Origin) -> None:
    for where in ("https://other.example/x", "http://127.0.0.1:1/", "//evil.example/", "/here"):
        service.answer = (
            f"HTTP/1.1 302 Found\r\nlocation: {where}\r\ncontent-length: 0\r\n\r\n".encode()
        )
        service.heads.clear()
        with counted() as connected:
            status, headers, _ = await call(there.mine, "/connections/hub/x")
        assert (status, headers["location"]) == (302, where)
        assert set(connected) <= {STAND_IN}
        assert len(service.heads) == 1
    assert set(there.names.asked) == {NAME}


@asynccontextmanager
async def _under_way(
    there: There, service: Origin
) -> AsyncIterator[tuple[aiohttp.ClientResponse, asyncio.Event]]:
    """An answer whose first five bytes have come, and the gate behind which its last four wait."""
    service.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nfirst"
    service.gate = gate = asyncio.Event()
    headers = {"authorization": f"Bearer {there.mine.key}"}
    url = "http://localhost/connections/hub/sse"
    async with there.mine.session.get(url, headers=headers) as response:
        assert await response.content.readexactly(5) == b"first"
        yield response, gate


async def test_answer_streams_as_it_comes(there: There, service: Origin) -> None:
    async with _under_way(there, service) as (response, gate):
        gate.set()
        assert await response.content.read() == b"last"


async def test_answer_under_way_is_cut_when_its_tenant_is_suspended(
    there: There, service: Origin
) -> None:
    async with _under_way(there, service) as (response, gate):
        state = wire.TenantState(plan="free", status="suspended", version=9)
        await there.house.client.put_tenant(there.mine.id, state)
        gate.set()
        with pytest.raises(aiohttp.ClientError):
            await response.content.read()


async def test_connection_is_used_again_by_the_same_tenant_alone(
    there: There, service: Origin
) -> None:
    for _ in range(3):
        assert (await call(there.mine, "/connections/hub/"))[0] == 200
    assert service.connections == 1
    other = await there.house.tenant()
    given = wire.TokenConnectionRequest(token="theirs-1", origin=f"https://{NAME}:{service.port}")
    await there.house.client.put_token_connection(other.id, "hub", given)
    assert (await call(other, "/connections/hub/"))[0] == 200
    assert service.header("authorization") == ["Bearer theirs-1"]
    assert service.connections == 2


async def test_call_that_is_still_connecting_is_not_forgotten_for_another(
    there: There, service: Origin
) -> None:
    gate = there.names.gate = asyncio.Event()
    slow = asyncio.create_task(call(there.mine, "/connections/hub/"))
    await until(lambda: there.names.asked)
    other = await there.house.tenant()
    given = wire.TokenConnectionRequest(token="theirs-1", origin=f"https://{NAME}:{service.port}")
    await there.house.client.put_token_connection(other.id, "hub", given)
    assert (await call(other, "/connections/hub/"))[0] == 200
    gate.set()
    assert (await slow)[0] == 200


async def test_new_token_counts_at_once_and_a_deleted_one_no_more(
    there: There, service: Origin
) -> None:
    await there.connect(token="second-token")
    await call(there.mine, "/connections/hub/")
    assert service.header("authorization") == ["Bearer second-token"]
    await there.house.client.delete_token_connection(there.mine.id, "hub")
    status, headers, _ = await call(there.mine, "/connections/hub/")
    assert (status, headers["x-alcove-reason"]) == (404, "no_such_connection")
    assert len(service.heads) == 1


async def test_path_that_names_no_connection_leads_nowhere(there: There, service: Origin) -> None:
    for target, reason in (
        ("/connections/hub", "no_such_path"),
        ("/connections/", "no_such_path"),
        ("/connections//x", "no_such_connection"),
        ("/connections/HUB/x", "no_such_connection"),
        ("/connections/h%75b/x", "no_such_connection"),
        ("/connections/other/x", "no_such_connection"),
    ):
        status, headers, _ = await call(there.mine, target)
        assert (status, headers["x-alcove-reason"]) == (404, reason), target
    assert service.connections == 0


async def test_strangers_connection_does_not_exist(there: There, service: Origin) -> None:
    other = await there.house.tenant()
    status, headers, _ = await call(other, "/connections/hub/x")
    assert (status, headers["x-alcove-reason"]) == (404, "no_such_connection")
    assert service.connections == 0


async def test_token_that_has_ended_is_not_sent(there: There, service: Origin) -> None:
    await there.connect(expires_at=there.clock.now_at() + 1_000)
    assert (await call(there.mine, "/connections/hub/"))[0] == 200
    there.clock.advance(1)
    status, headers, _ = await call(there.mine, "/connections/hub/")
    assert (status, headers["x-alcove-reason"]) == (403, "connection_expired")
    assert len(service.heads) == 1


async def test_private_address_is_not_reached_though_the_gateway_named_the_origin(
    there: There, service: Origin
) -> None:
    there.names.say("inner.example", ["10.0.0.1"])
    for host in ("inner.example", "127.0.0.1", "[::1]"):
        await there.connect(origin=f"https://{host}:{service.port}")
        with counted() as connected:
            status, headers, _ = await call(there.mine, "/connections/hub/x")
        assert (status, headers["x-alcove-reason"]) == (403, "egress_address")
        assert connected == []


async def test_token_is_not_sent_to_a_server_that_cannot_prove_its_name(
    there: There, service: Origin
) -> None:
    there.names.say("other.example", [STAND_IN])
    await there.connect(origin=f"https://other.example:{service.port}")
    status, _, _ = await call(there.mine, "/connections/hub/x")
    assert status == 503
    assert service.heads == []


async def test_calls_are_counted_and_limited_by_the_plan(there: There, service: Origin) -> None:
    service.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nfirst"
    service.gate = asyncio.Event()
    running = [asyncio.create_task(call(there.mine, "/connections/hub/")) for _ in range(2)]
    await until(lambda: len(service.heads) == 2)
    status, headers, _ = await call(there.mine, "/connections/hub/")
    assert (status, headers["x-alcove-reason"]) == (429, "egress_at_once")
    service.gate.set()
    assert [status for status, _, _ in await asyncio.gather(*running)] == [200, 200]
    status, headers, _ = await call(there.mine, "/connections/hub/", "POST", data=bytes(1_000_001))
    assert (status, headers["x-alcove-reason"]) == (429, "egress_bytes_day")

    async def given_back() -> bool:
        day = await there.house.client.egress_day(there.mine.id)
        return (day.calls, day.bytes, day.bytes_limit) == (3, 18, 1_000_000)

    await until(given_back)


async def test_token_comes_out_nowhere_and_lies_sealed(there: There, tmp_path: Path) -> None:
    shown = await there.house.client.token_connections(there.mine.id)
    assert [(item.id, item.origin) for item in shown] == [("hub", f"https://{NAME}:{there.port}")]
    assert TOKEN not in shown[0].model_dump_json()
    assert TOKEN not in repr(wire.TokenConnectionRequest(origin="https://a.example", token=TOKEN))
    for file in tmp_path.glob("meter.db*"):
        assert TOKEN.encode() not in file.read_bytes()


async def test_token_is_sealed_anew_when_the_key_is_rotated(there: There, service: Origin) -> None:
    sealer = Sealer.from_secrets("6b" * 32, "5a" * 32)
    assert await reseal(there.house.db, sealer) == 1
    [row] = await there.house.rows("SELECT sealed_token FROM token_connection")
    assert sealer.is_current(row["sealed_token"])
    assert sealer.open(row["sealed_token"], f"token_connection/{there.mine.id}/hub") == TOKEN


NO_ORIGINS = (
    "http://a.example", "https://", "https://a.example/", "https://a.example/x", "https://u@a.example",
    "https://a.example?x", "https://a.example#x", "https://a.example:0x1", "https://a.example:99999",
    "ftp://a.example", "a.example", "https://2130706433", "https://a b.example", "https://a.example\\@b",
    "https://a.example:0", "https://a.example:00443", "https://a.example:443:443", "https://a.example:",
    "https://a.example:+443", "https://a.example:\uff14\uff14\uff13", "https://a.example..", "https://a%2eexample",
    "https://[::1", "https://::1", "https://[::1]x", "https://[fe80::1%25eth0]", "https://[2606:4700::1%1]",
    "https://\uff21.example", "https://a\u3002example", "https://exam\u00adple.org", "https://\u24d4xample.com",
    "https://a.example\t", "https://a.example\n", "https://a.example:443@evil.example", "https://a.example;x",
    "https:///a.example", "https:a.example", "https://127.1", "https://0x7f.1", "https://017700000001",
    "https://*.example", "https://-a.example", "https://a.example?", "https://a.example#",
)  # fmt: skip


@pytest.mark.parametrize("given", NO_ORIGINS)
def test_origin_is_refused_when_it_is_more_or_less_than_one(given: str) -> None:
    with pytest.raises(AlcoveError) as caught:
        origin(given)
    assert caught.value.code == "invalid"


def test_origin_is_written_in_one_way() -> None:
    assert origin("https://API.Example.") == "https://api.example"
    assert origin("https://api.example:443") == "https://api.example"
    assert origin("https://api.example:8443") == "https://api.example:8443"
    assert origin("https://[2606:4700::1111]:444") == "https://[2606:4700::1111]:444"


async def test_token_is_refused_when_it_cannot_stand_in_a_header(there: There) -> None:
    for token in ("a b", "a\r\nx: y", "tökén", "\x7f"):
        with pytest.raises(AlcoveError) as caught:
            await there.connect(token=token)
        assert caught.value.code == "invalid"
