"""The wall at a tenant's socket: whose key it is, what exists there, and what silence can do to others."""

import asyncio
import io
import json
import socket
import time
from pathlib import Path

import pytest

from infra.kit import httpd, unix
from infra.kit.errors import AlcoveError
from tests import scripted as s
from tests.metering_proxy.house import House, Tenant, a_house
from tests.scripted import ScriptedProvider
from tests.waiting import until

pytestmark = pytest.mark.thorough


async def _raw(path: Path, sent: bytes) -> bytes:
    """What comes back until the other side closes."""
    reader, writer = await unix.open_stream(path)
    writer.write(sent)
    try:
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()


async def test_strangers_key_is_refused_and_written_down(house: House, tenant: Tenant) -> None:
    stranger = await house.tenant()
    answer = await tenant.post("/v1/chat/completions", {}, key=stranger.key)
    assert (answer.status, answer.headers["x-alcove-reason"]) == (401, "key")
    [row] = await house.rows("SELECT tenant, what, detail FROM audit")
    assert (row["tenant"], row["what"]) == (tenant.id, "stranger_key")
    assert stranger.id in row["detail"]
    assert stranger.key not in row["detail"]
    await tenant.post("/v1/chat/completions", {}, key=stranger.key)
    assert len(await house.rows("SELECT id FROM audit")) == 1


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({}, "no_key"),
        ({"authorization": "Bearer wrong"}, "key"),
        ({"authorization": "Basic {key}"}, "key"),
        ({"x-api-key": "wrong"}, "key"),
        ({"authorization": "Bearer {key}", "x-api-key": "another"}, "two_keys"),
        ({"api-key": "{key}", "x-goog-api-key": "another"}, "two_keys"),
    ],
)
async def test_key_is_needed(
    house: House, tenant: Tenant, headers: dict[str, str], reason: str
) -> None:
    shown = {name: value.format(key=tenant.key) for name, value in headers.items()}
    async with tenant.session.get("http://localhost/v1/models", headers=shown) as response:
        assert (response.status, response.headers["x-alcove-reason"]) == (401, reason)


@pytest.mark.parametrize("header", ["x-api-key", "api-key", "x-goog-api-key"])
async def test_key_is_taken_from_each_clients_header(tenant: Tenant, header: str) -> None:
    shown = {header: tenant.key}
    async with tenant.session.get("http://localhost/v1/models", headers=shown) as response:
        assert response.status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1/responses/resp_1",
        "/v1/files",
        "/v1/chat/completions/",
        "/v1//chat/completions",
        "/v1/chat/completions/../embeddings",
        "/V1/chat/completions",
        "/openai/v1/chat/completions",
        "/livez",
        "/metrics",
        "/providers",
        "/tenants/query",
    ],
)
async def test_path_without_a_meter_does_not_exist(
    house: House, tenant: Tenant, scripted: ScriptedProvider, path: str
) -> None:
    request = f"POST {path} HTTP/1.1\r\nhost: m\r\nauthorization: Bearer {tenant.key}\r\n"
    answer = await _raw(
        tenant.socket, f"{request}connection: close\r\ncontent-length: 2\r\n\r\n{{}}".encode()
    )
    assert answer.startswith((b"HTTP/1.1 404 ", b"HTTP/1.1 400 "))
    assert scripted.requests == []


async def test_key_dies_with_its_generation_and_with_the_next_minting(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.always(reply=s.text("x"))
    again = await house.generation(tenant.id, 1)
    assert (await tenant.post("/v1/chat/completions", {})).status == 401
    assert (await again.chat()).status == 200
    following = await house.generation(tenant.id, 2)
    assert (await again.chat()).status == 200  # it drains beside its successor
    await house.client.delete_key(tenant.id, 1)
    assert (await following.chat()).status == 200
    assert not again.socket.exists()
    with pytest.raises(OSError):
        await unix.connect(again.socket, timeout_s=0.2)
    await house.client.delete_key(tenant.id, 1)  # no error where there is none


async def test_old_key_is_refused_at_a_new_generations_socket_once_deleted(
    house: House, tenant: Tenant
) -> None:
    following = await house.generation(tenant.id, 2)
    await house.client.delete_key(tenant.id, 1)
    answer = await following.post("/v1/chat/completions", {}, key=tenant.key)
    assert answer.status == 401


@pytest.mark.parametrize("given", ["/etc", "{own}/..", "{own}/../../2/meter", "relative"])
async def test_listener_is_bound_in_the_generations_own_directory_only(
    house: House, tenant: Tenant, given: str
) -> None:
    with pytest.raises(AlcoveError) as caught:
        await house.client.mint_key(tenant.id, 1, given.format(own=tenant.socket.parent))
    assert (caught.value.code, caught.value.reason) == ("invalid", "directory")


async def test_control_listener_needs_the_service_secret(house: House, tenant: Tenant) -> None:
    from metering_proxy.client import MeterClient

    stranger = MeterClient(house.meter.settings.listen, "not the secret")
    with pytest.raises(AlcoveError) as caught:
        await stranger.mint_key(tenant.id, 1, str(tenant.socket.parent))
    await stranger.close()
    assert caught.value.code == "unauthorized"


async def test_live_generations_are_bound_again_when_the_meter_starts(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    async with a_house(tmp_path, url) as house:
        await house.connect(scripted)
        tenant = await house.tenant()
        socket_path, key = tenant.socket, tenant.key
    with pytest.raises(OSError):
        await unix.connect(socket_path, timeout_s=0.2)
    async with a_house(tmp_path, url):
        request = f"GET /v1/models HTTP/1.1\r\nhost: m\r\nx-api-key: {key}\r\n"
        answer = await _raw(socket_path, f"{request}connection: close\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"scripted/scripted-model" in answer


async def test_header_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    limits = httpd.Limits(head_s=0.2)
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/m.db", limits=limits) as house:
        tenant = await house.tenant()
        assert await _raw(tenant.socket, b"") == b""
        half = b"POST /v1/chat/completions HTTP/1.1\r\nhost: m\r\nx"
        assert (await _raw(tenant.socket, half)).startswith(b"HTTP/1.1 408 ")


async def test_header_that_never_ends_is_cut(house: House, tenant: Tenant) -> None:
    endless = b"GET /v1/models HTTP/1.1\r\nx: " + b"a" * 400_000
    assert b"HTTP/1.1 431 " in await _raw(tenant.socket, endless)


async def test_body_that_is_too_large_is_refused_before_it_is_read(
    house: House, tenant: Tenant
) -> None:
    head = f"POST /v1/messages HTTP/1.1\r\nhost: m\r\nx-api-key: {tenant.key}\r\n"
    answer = await _raw(tenant.socket, f"{head}content-length: 40000000\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"request_too_large"' in answer


async def test_body_of_twelve_megabytes_is_an_ordinary_one(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text("a cat").using(10, 2))
    picture = {"url": "data:image/png;base64," + "A" * 12_000_000}
    said = [{"type": "text", "text": "what is this?"}, {"type": "image_url", "image_url": picture}]
    body = {"model": "default", "messages": [{"role": "user", "content": said}]}
    rich = await house.tenant("plus")
    sent = io.BytesIO(json.dumps(body).encode())
    shown = {"authorization": f"Bearer {rich.key}"}
    url = "http://localhost/v1/chat/completions"
    async with rich.session.post(url, data=sent, headers=shown) as answer:
        assert answer.status == 200
    assert len(scripted.requests[-1].body) > 12_000_000
    await house.entries(rich)


async def test_body_names_neither_who_pays_nor_where_it_goes(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text("x").using(10, 2))
    other = await house.tenant()
    elsewhere = "http://127.0.0.1:1"
    body = {
        "model": "default",
        "messages": [{"role": "user", "content": "hi"}],
        "user": other.id,
        "metadata": {"user_id": other.id, "tenant": other.id},
    }
    for name in ("api_base", "base_url", "custom_llm_provider"):
        refused = await tenant.post("/v1/chat/completions", {**body, name: elsewhere})
        assert refused.headers["x-alcove-reason"] == "member_not_metered"
    answer = await tenant.post(
        "/v1/chat/completions",
        body,
        x_portkey_custom_host=elsewhere,
        x_alcove_tenant=other.id,
        x_forwarded_host=elsewhere,
        x_tenant=other.id,
    )
    assert answer.status == 200
    await house.entries(tenant)
    assert await house.rows("SELECT * FROM entry WHERE account = :a", a=other.id) == []
    sent = str(scripted.requests[-1].raw_headers).lower()
    assert elsewhere not in sent
    assert tenant.id not in sent + scripted.requests[-1].body.decode()


async def test_connection_is_turned_away_when_all_listeners_together_hold_too_many(
    tmp_path: Path,
) -> None:
    few = httpd.Capacity(connections=2)
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/m.db", capacity=few) as house:
        one, other = await house.tenant(), await house.tenant()
        held = [await unix.connect(one.socket), await unix.connect(one.socket)]
        await until(lambda: few.connections == 2)
        assert (await _raw(other.socket, b"")).startswith(b"HTTP/1.1 503 ")
        for connection in held:
            connection.close()


async def _median_ms(tenant: Tenant, calls: int = 40) -> float:
    took = []
    for _ in range(calls):
        began = time.perf_counter()
        assert (await tenant.chat()).status == 200
        took.append(time.perf_counter() - began)
    return sorted(took)[calls // 2] * 1000


@pytest.mark.slow  # measures time
async def test_silent_connections_at_one_socket_do_not_slow_another(
    house: House, scripted: ScriptedProvider
) -> None:
    await house.connect(scripted)
    scripted.always(reply=s.text("x"))
    noisy = await house.tenant("plus")
    quiet = [await house.tenant("plus") for _ in range(2)]
    before_ms = await _median_ms(quiet[0])
    silent: list[socket.socket] = []
    for _ in range(500):
        silent.append(await unix.connect(noisy.socket))
    await until(lambda: sum(_closed(one) for one in silent) >= 500 - 64, timeout_s=30)
    after_ms = await _median_ms(quiet[1])
    assert sum(not _closed(one) for one in silent) <= 64
    for one in silent:
        one.close()
    assert after_ms < 3 * before_ms + 50


def _closed(one: socket.socket) -> bool:
    """Whether the other side has ended the connection: an answer is there, or the end."""
    try:
        return one.recv(1, socket.MSG_PEEK) is not None
    except BlockingIOError:
        return False
