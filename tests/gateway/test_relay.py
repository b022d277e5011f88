"""What crosses to an agent and back, and what does not."""

import asyncio
import os
from pathlib import Path

import pytest

from infra.kit import ids
from tests.gateway.browser import Browser
from tests.gateway.conftest import DEPLOYMENT_SECRET, Gateway, Serve, settings_for
from tests.gateway.misbehaving import MISBEHAVIOURS, listening, says
from tests.waiting import until

pytestmark = pytest.mark.thorough

C = "c" * 26


async def awake(gateway: Gateway, email: str = "ada@example.org") -> tuple[Browser, str]:
    browser = await gateway.person(email)
    tenant = await gateway.tenant_of(email)
    await browser.api("POST", "/api/wake", {"reason": "page"})
    return browser, tenant


async def test_every_agent_route_is_relayed_byte_for_byte(gateway: Gateway) -> None:
    ada, tenant = await awake(gateway)
    agent = gateway.spawner.of(tenant).agent
    assert agent is not None
    calls = [
        ("PUT", f"/api/conversations/{C}", {"title": "Ünï"}, 201),
        ("PUT", f"/api/conversations/{C}", {"title": "Two"}, 200),
        ("GET", "/api/conversations?limit=5&q=a%2fb&before=1.x", None, 200),
        ("GET", f"/api/conversations/{C}/messages?limit=2", None, 200),
        ("PUT", "/api/turns/nope/cancellation", None, 404),
        ("POST", "/api/turns/nope/retries", {"client_message_id": "m9"}, 404),
        ("GET", "/api/memory?q=x", None, 200),
        ("DELETE", "/api/memory/f1", None, 404),
        ("DELETE", f"/api/conversations/{C}", None, 204),
    ]
    for method, target, body, status in calls:
        answer = await ada.api(method, target, body)
        assert answer.status == status, (method, target, answer.text)
        assert agent.requests[-1][:2] == (method, target)


async def test_no_other_route_of_the_agent_is_reached(gateway: Gateway) -> None:
    ada, tenant = await awake(gateway)
    agent = gateway.spawner.of(tenant).agent
    assert agent is not None
    seen = len(agent.requests)
    for path in (
        "/api/events",
        "/api/status",
        "/status",
        "/healthz",
        "/api/conversations/",
        f"/api/conversations/{C}/messages/x",
        "/api/turns/x",
        "/api/memory/x/y",
        f"/api/conversations/{C}%3f/messages",
        "/api/conversations/a;b",
    ):
        assert (await ada.api("GET", path)).status in (400, 404, 405), path
    assert len(agent.requests) == seen


async def test_headers_of_the_browser_do_not_reach_the_agent(gateway: Gateway) -> None:
    ada, tenant = await awake(gateway)
    agent = gateway.spawner.of(tenant).agent
    assert agent is not None
    foreign = {
        "authorization": "Bearer stolen",
        "proxy-authorization": "Basic x",
        "x-forwarded-for": "1.2.3.4",
        "x-forwarded-host": "evil.example",
        "forwarded": "for=1.2.3.4",
        "x-real-ip": "1.2.3.4",
        "x-user": "root",
        "x-tenant-id": "other",
        "x-request-id": "mine-mine-mine",
        "te": "trailers",
        "connection": "x-secret",
        "x-secret": "s",
        "accept-encoding": "gzip",
        "traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01",
    }
    answer = await ada.send("GET", "/api/conversations", headers=foreign)
    assert answer.status == 200
    headers = agent.requests[-1][2]
    assert set(headers) <= {"host", "authorization", "accept", "content-type", "x-request-id"}
    secret = ids.instance_secret(DEPLOYMENT_SECRET, tenant, 1)
    assert headers["authorization"] == f"Bearer {secret}"
    assert headers["x-request-id"] == answer.headers["x-request-id"] != "mine-mine-mine"
    assert headers["host"] == "agent"


async def test_headers_of_the_agent_do_not_reach_the_browser(
    gateway: Gateway, tmp_path: Path
) -> None:
    ada, tenant = await awake(gateway)
    path = replace_agent(gateway, tenant, tmp_path)
    raw = (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=latin-1\r\n"
        b"set-cookie: alcove=stolen; Domain=alcove.test\r\nclear-site-data: *\r\n"
        b"strict-transport-security: max-age=1\r\nalt-svc: h2=evil:443\r\n"
        b"content-security-policy: default-src *\r\naccess-control-allow-origin: *\r\n"
        b"service-worker-allowed: /\r\nrefresh: 0;url=//evil\r\nx-evil: 1\r\n"
        b"content-length: 2\r\n\r\n{}"
    )
    async with listening(path, says(raw)):
        answer = await ada.api("GET", "/api/conversations")
    assert (answer.status, answer.text) == (200, "{}")
    assert answer.headers["content-type"] == "application/json"
    names = {name.lower() for name in answer.headers}
    assert not names & {
        "set-cookie",
        "clear-site-data",
        "strict-transport-security",
        "alt-svc",
        "access-control-allow-origin",
        "service-worker-allowed",
        "refresh",
        "x-evil",
    }
    assert "default-src 'none'" in answer.headers["content-security-policy"]


async def test_bad_answer_is_refused_and_troubles_nobody_else(serve: Serve, tmp_path: Path) -> None:
    gateway = await serve(
        relay_first_byte_s=0.4, relay_total_s=0.8, relay_answer_bytes=2 * 1024 * 1024
    )
    eve, tenant = await awake(gateway, "eve@example.org")
    bob, _ = await awake(gateway, "bob@example.org")
    path = replace_agent(gateway, tenant, tmp_path)
    assert len(MISBEHAVIOURS) >= 20
    for name, (act, statuses) in MISBEHAVIOURS.items():
        async with listening(path, act):
            bad = asyncio.create_task(eve.api("GET", "/api/conversations"))
            other = await bob.api("GET", "/api/conversations")
            answer = await bad
        assert answer.status in statuses, (name, answer.text)
        if answer.status == 502:
            assert answer.json["error"]["code"] == "bad_gateway", name
        assert "evil" not in answer.text
        assert other.status == 200, name
    path.unlink(missing_ok=True)
    assert (await eve.api("GET", "/api/session")).status == 200


async def test_second_answer_hidden_behind_the_first_is_not_believed(
    gateway: Gateway, tmp_path: Path
) -> None:
    """Surplus bytes after an answer would become the next request's; the connection is closed."""
    eve, tenant = await awake(gateway, "eve@example.org")
    path = replace_agent(gateway, tenant, tmp_path)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "

    async def surplus(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head + b"7\r\n\r\n" + b'"first"' + head + b"8\r\n\r\n" + b'"hidden"')
        await writer.drain()
        await reader.read()  # until the other side closes

    async with listening(path, surplus) as seen:
        for _ in range(3):
            assert (await eve.api("GET", "/api/conversations")).text == '"first"'
        assert len(seen) == 3, "each request had a connection of its own"


@pytest.mark.parametrize("trick", ["link", "stranger", "file", "directory link"])
async def test_socket_that_is_not_the_agents_own_leads_nowhere(
    gateway: Gateway, tmp_path: Path, trick: str
) -> None:
    eve, tenant = await awake(gateway, "eve@example.org")
    path = replace_agent(gateway, tenant, tmp_path)
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    async with listening(tmp_path / "elsewhere" / "secret.sock", says(answer)) as seen:
        if trick == "link":
            path.symlink_to(tmp_path / "elsewhere" / "secret.sock")
        elif trick == "stranger":
            os.link(tmp_path / "elsewhere" / "secret.sock", path)
            os.chown(path, 4242, -1)
        elif trick == "file":
            path.write_text("x")
        else:
            path.parent.rmdir()
            path.parent.symlink_to(tmp_path / "elsewhere")
            (tmp_path / "elsewhere" / "agent.sock").hardlink_to(
                tmp_path / "elsewhere" / "secret.sock"
            )
        assert (await eve.api("GET", "/api/conversations")).status == 503
        assert seen == []


async def test_get_says_asleep_or_waking_and_wakes_nobody(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    answer = await ada.api("GET", "/api/conversations")
    assert (answer.status, answer.reason) == (503, "agent_asleep")
    gateway.spawner.waking = "when told"
    await ada.api("POST", "/api/wake", {"reason": "page"})
    answer = await ada.api("GET", "/api/conversations")
    assert (answer.status, answer.reason) == (503, "agent_waking")
    assert sum(call.startswith("wake") for call in gateway.spawner.calls) == 1


async def test_address_is_asked_again_when_the_agent_has_moved(gateway: Gateway) -> None:
    ada, tenant = await awake(gateway)
    assert (await ada.api("GET", "/api/conversations")).status == 200
    await gateway.spawner.stop(tenant)
    answer = await ada.api("GET", "/api/conversations")
    assert (answer.status, answer.reason) == (503, "agent_asleep")
    await ada.api("POST", "/api/wake", {"reason": "page"})
    assert gateway.spawner.of(tenant).generation == 2
    assert (await ada.api("GET", "/api/conversations")).status == 200


async def test_relay_needs_no_spawner_once_the_agent_is_known(gateway: Gateway) -> None:
    ada, _ = await awake(gateway)
    assert (await ada.api("GET", "/api/conversations")).status == 200
    gateway.spawner.away = True
    assert (await ada.api("GET", "/api/conversations")).status == 200


async def test_person_is_told_in_plain_words_when_the_spawner_is_away(
    serve: Serve, tmp_path: Path
) -> None:
    nowhere = settings_for(tmp_path, spawner_url=f"unix://{tmp_path}/nobody.sock")
    gateway = await serve(settings=nowhere)
    ada = await gateway.person("ada@example.org")
    for answer in (
        await ada.api("GET", "/api/conversations"),
        await ada.api("POST", "/api/wake", {"reason": "person"}),
    ):
        assert (answer.status, answer.reason) == (503, "spawner_away")
        assert "Nothing is lost" in answer.json["error"]["message"]
    assert (await ada.post("hello", "m1")).json["state"] == "waiting"
    assert (await ada.visit("/chat")).status == 200


async def test_too_many_requests_at_once_are_refused(serve: Serve, tmp_path: Path) -> None:
    gateway = await serve(relay_in_flight=2, relay_first_byte_s=0.5)
    eve, tenant = await awake(gateway, "eve@example.org")
    path = replace_agent(gateway, tenant, tmp_path)
    async with listening(path, MISBEHAVIOURS["silence"][0]) as seen:
        slow = [asyncio.create_task(eve.api("GET", "/api/memory")) for _ in range(2)]
        await until(lambda: len(seen) == 2)
        assert (await eve.api("GET", "/api/memory")).status == 429
        assert {(await task).status for task in slow} == {504}


async def test_wake_tells_no_address(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    answer = await ada.api("POST", "/api/wake", {"reason": "person"})
    assert answer.json["state"] == "ready"
    assert "sock" not in answer.text
    assert "owner_uid" not in answer.json
    assert (await ada.api("POST", "/api/wake", {"reason": "admin"})).status == 400


def replace_agent(gateway: Gateway, tenant: str, tmp_path: Path) -> Path:
    """Takes the agent's socket away, as its tenant could; answers where it was."""
    path = tmp_path / "t" / tenant / str(gateway.spawner.of(tenant).generation) / "agent/agent.sock"
    path.unlink()
    return path
