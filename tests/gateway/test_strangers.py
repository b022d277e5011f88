"""Tenant B with tenant A's ids, on every route: 404, and A's agent hears nothing."""

import re

import pytest
from sqlalchemy import select

from gateway.models import account, session
from infra.kit import ids
from metering_proxy.wire import GrantRequest
from tests.gateway.browser import Browser
from tests.gateway.conftest import Gateway
from tests.gateway.routes import walk
from tests.waiting import until

pytestmark = pytest.mark.thorough

# Routes that have no id of anybody in them, and the door's token, which is its own proof.
_LINKS = {"/setup", "/setup/", "/setup/{token}", "/password", "/password/", "/password/{token}"}
_FREE = {"/static/{name:path}", *_LINKS}


async def _ids_of(gateway: Gateway, browser: Browser, email: str) -> dict[str, str]:
    """One real id of each kind that belongs to the person."""
    tenant = await gateway.tenant_of(email)
    conversation = ids.ulid()
    gateway.spawner.waking = "at once"
    await browser.post("private", "m1", conversation)
    await until(lambda: gateway.spawner.of(tenant).memory.log)
    turn = gateway.spawner.of(tenant).memory.log[0]["turn_id"]
    async with gateway.parts.db.read() as reading:
        session_id = await reading.value(
            select(session.c.id)
            .join(account, account.c.id == session.c.account_id)
            .where(account.c.email == email)
        )
    await gateway.spawner.stop(tenant)
    gateway.spawner.waking = "when told"
    assert (await browser.post("waiting", "m2", conversation)).json["state"] == "waiting"
    return {
        "tenant": tenant,
        "conversation_id": conversation,
        "turn_id": turn,
        "fact_id": "f1",
        "client_message_id": "m2",
        "session_id": session_id,
        "provider": "p1",
        "key": await _key_of(gateway, browser, tenant),
        "grant": await _grant_of(gateway, tenant),
        "call": gateway.meter.books.called(tenant).id,
    }


async def _key_of(gateway: Gateway, browser: Browser, tenant: str) -> str:
    await browser.submit("/account/keys/programs", name="laptop", lasts="", models="")
    [key] = gateway.meter.people.api_keys[tenant]
    return key.id


async def _grant_of(gateway: Gateway, tenant: str) -> str:
    given = GrantRequest(amount_nanos=1_000_000_000)
    return (await gateway.parts.meter.put_grant(tenant, ids.ulid(), given)).id


async def test_stranger_gets_404_for_every_id_on_every_route(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    hers = await _ids_of(gateway, ada, "ada@example.org")
    eve = await gateway.person("eve@example.org")
    await eve.api("POST", "/api/wake", {"reason": "page"})
    await gateway.spawner.become_ready(await gateway.tenant_of("eve@example.org"))
    ada_memory = gateway.spawner.of(hers["tenant"]).memory
    before = (dict(ada_memory.conversations), ada_memory.seq)
    walked = 0
    for method, path in walk(gateway.app):
        names = re.findall(r"\{(\w+)(?::path)?\}", path)
        if not names or path in _FREE:
            continue
        target = re.sub(r"\{(\w+)\}", lambda match: hers[match[1]], path)
        if target.startswith("/api/"):
            answer = await eve.api(method, target, {} if method in ("POST", "PUT") else None)
        elif method == "GET":
            answer = await eve.visit(target)
        else:
            answer = await eve.submit(target, reason="x", plan="plus", action="stop")
        walked += 1
        if (method, path) in _MAKES_OWN:
            assert answer.status in _MAKES_OWN[(method, path)], (method, path, answer.text)
        else:
            assert answer.status == 404, (method, path, answer.status, answer.text[:300])
    assert walked >= 20
    assert (dict(ada_memory.conversations), ada_memory.seq) == before
    people = gateway.meter.people
    assert people.grants[hers["grant"]].revoked_at is None
    assert [(key.id, key.revoked_at) for key in people.api_keys[hers["tenant"]]] == [
        (hers["key"], None)
    ]
    waiting = (await ada.api("GET", "/api/pending-messages")).json["messages"]
    assert [each["client_message_id"] for each in waiting] == ["m2"]
    assert (await ada.visit("/account")).status == 200


# An id of a conversation is made by its client, so a stranger's id makes one of the stranger's own,
# behind another wall; the chat page is empty until the stranger's own agent has been asked.
_MAKES_OWN = {
    ("PUT", "/api/conversations/{conversation_id}"): (201,),
    ("POST", "/api/conversations/{conversation_id}/messages"): (400,),
    ("GET", "/chat/{conversation_id}"): (200,),
    # made just above, in the stranger's own agent
    ("DELETE", "/api/conversations/{conversation_id}"): (204,),
    ("GET", "/api/conversations/{conversation_id}/messages"): (404, 200),
}


async def test_stream_carries_nothing_of_another_tenant(gateway: Gateway) -> None:
    ada, eve = await gateway.person("ada@example.org"), await gateway.person("eve@example.org")
    for browser in (ada, eve):
        await browser.api("POST", "/api/wake", {"reason": "page"})
    memory = gateway.spawner.of(await gateway.tenant_of("ada@example.org")).memory
    hers = f"{memory.epoch}.0.0"
    async with ada.stream(hers) as one, eve.stream(hers) as two:
        await ada.post("a private thought", "m1")
        await until(lambda: "RUN_FINISHED" in one.types())
        await until(lambda: two.named("log.reset"))
    assert "private" in one.text()
    assert two.types() == []
    assert "private" not in str(two.frames)
    assert memory.epoch not in str(two.named("log.reset"))


async def test_nobody_is_let_in_without_a_session(gateway: Gateway) -> None:
    stranger = gateway.browser()
    open_to_all = {"/", "/sign-in", "/sign-up", "/sign-out", "/livez", "/readyz"}
    open_to_all |= {"/static/{name:path}", "/favicon.svg", *_LINKS}
    closed = 0
    for method, path in walk(gateway.app):
        if path in open_to_all:
            continue
        target = re.sub(r"\{\w+\}", "abcdefghijklmnopqrstuvwxyz", path)
        answer = await stranger.api(method, target, {} if method in ("POST", "PUT") else None)
        assert answer.status == 401, (method, path, answer.status)
        closed += 1
    assert closed >= 40
