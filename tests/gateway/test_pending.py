"""Messages for an agent that is not ready: none lost, none doubled, in their order."""

import pytest
from sqlalchemy import select

from gateway.models import pending_message
from infra.kit.clock import FakeClock
from tests.gateway.conftest import Gateway, Serve
from tests.waiting import until

pytestmark = pytest.mark.thorough


async def _waiting(gateway: Gateway) -> list[str]:
    async with gateway.parts.db.read() as reading:
        rows = await reading.rows(
            select(pending_message.c.client_message_id).order_by(pending_message.c.position)
        )
    return [row["client_message_id"] for row in rows]


async def test_messages_arrive_in_order_when_the_agent_wakes(gateway: Gateway) -> None:
    gateway.spawner.waking = "when told"
    ada = await gateway.person("ada@example.org")
    tenant = await gateway.tenant_of("ada@example.org")
    for n in range(5):
        assert (await ada.post(f"text {n}", f"m{n}")).json["state"] == "waiting"
    listed = (await ada.api("GET", "/api/pending-messages")).json["messages"]
    assert [m["text"] for m in listed] == [f"text {n}" for n in range(5)]
    assert {m["state"] for m in listed} == {"waiting"}
    await until(lambda: gateway.spawner.of(tenant).state == "starting")
    await gateway.spawner.become_ready(tenant)
    memory = gateway.spawner.of(tenant).memory
    await until(lambda: list(memory.by_client_id) == [f"m{n}" for n in range(5)])

    async def none_waits() -> bool:
        return not await _waiting(gateway)

    await until(none_waits)


@pytest.mark.parametrize("by", ["the process that took it", "the next process"])
async def test_message_keeps_its_requests_id_when_it_is_handed_over(serve: Serve, by: str) -> None:
    gateway = await serve()
    gateway.spawner.waking = "when told"
    ada = await gateway.person("ada@example.org")
    tenant = await gateway.tenant_of("ada@example.org")
    asked = [(await ada.post(f"text {n}", f"m{n}")).headers["x-request-id"] for n in range(3)]
    if by == "the next process":
        await gateway.parts.background.close()
        gateway = await serve()
    await until(lambda: gateway.spawner.of(tenant).state == "starting")
    await gateway.spawner.become_ready(tenant)
    agent = gateway.spawner.of(tenant).agent
    assert agent is not None
    await until(lambda: len(gateway.spawner.of(tenant).memory.by_client_id) == 3)
    shown = [
        headers["x-request-id"] for method, _, headers, _ in agent.requests if method == "POST"
    ]
    assert shown == asked
    assert len(set(asked)) == 3


async def test_text_is_sealed_when_it_waits(gateway: Gateway) -> None:
    gateway.spawner.waking = "when told"
    ada = await gateway.person("ada@example.org")
    await ada.post("a secret thought", "m1")
    async with gateway.parts.db.read() as reading:
        rows = await reading.rows(select(pending_message))
    assert "secret thought" not in str([dict(row) for row in rows])


async def test_message_survives_when_the_gateway_ends(serve: Serve) -> None:
    before = await serve()
    before.spawner.waking = "when told"
    ada = await before.person("ada@example.org")
    tenant = await before.tenant_of("ada@example.org")
    await ada.post("remember me", "m1")
    await before.parts.background.close()  # this process hands over nothing any more
    after = await serve()
    await until(lambda: after.spawner.of(tenant).state == "starting")
    await after.spawner.become_ready(tenant)
    memory = after.spawner.of(tenant).memory
    await until(lambda: list(memory.by_client_id) == ["m1"])
    assert memory.by_client_id["m1"]["text"] == "remember me"


async def test_message_is_handed_over_once_when_it_is_sent_twice(gateway: Gateway) -> None:
    gateway.spawner.waking = "when told"
    ada = await gateway.person("ada@example.org")
    tenant = await gateway.tenant_of("ada@example.org")
    assert (await ada.post("hello", "m1")).status == 202
    assert (await ada.post("hello", "m1")).status == 202
    other = await ada.post("something else", "m1")
    assert (other.status, other.reason) == (409, "reused")
    assert await _waiting(gateway) == ["m1"]
    await until(lambda: gateway.spawner.of(tenant).state == "starting")
    await gateway.spawner.become_ready(tenant)
    memory = gateway.spawner.of(tenant).memory
    await until(lambda: memory.by_client_id)
    assert (await ada.post("hello", "m1")).status == 202
    assert memory.conversations["c" * 26] and len(memory.conversations["c" * 26]) == 1


@pytest.mark.parametrize("conversation", ["c", "c" * 27, "c" * 64, "u" * 26, "C" * 26])
async def test_message_is_not_kept_when_its_conversation_cannot_be(
    gateway: Gateway, conversation: str
) -> None:
    ada = await gateway.person("ada@example.org")
    assert (await ada.post("hello", "m1", conversation)).status == 404
    assert await _waiting(gateway) == []


async def test_failed_wake_offers_retry_and_discard(gateway: Gateway) -> None:
    gateway.spawner.waking = "fails"
    ada = await gateway.person("ada@example.org")
    tenant = await gateway.tenant_of("ada@example.org")
    async with ada.stream() as stream:
        await ada.post("one", "m1")
        await ada.post("two", "m2")

        async def both_failed() -> bool:
            listed = (await ada.api("GET", "/api/pending-messages")).json["messages"]
            return [m["state"] for m in listed] == ["failed", "failed"]

        # the second may be taken while the first wake is failing; then it fails with its own
        await until(both_failed)
        shown = stream.named("pending")[-1]["messages"]
        assert shown[0]["error"]["code"] == "image_missing"
        assert (await ada.api("DELETE", "/api/pending-messages/m2")).status == 204
        assert (await ada.api("DELETE", "/api/pending-messages/m2")).status == 404
        gateway.spawner.waking = "at once"
        assert (await ada.api("POST", "/api/pending-messages/m1/retries")).status == 202
        memory = gateway.spawner.of(tenant).memory
        await until(lambda: list(memory.by_client_id) == ["m1"])
        await until(lambda: stream.named("pending")[-1]["messages"] == [])


async def test_twenty_first_message_is_refused(serve: Serve) -> None:
    gateway = await serve(pending_per_tenant=3)
    gateway.spawner.waking = "when told"
    ada = await gateway.person("ada@example.org")
    statuses = [(await ada.post("x", f"m{n}")).status for n in range(4)]
    assert statuses == [202, 202, 202, 429]
    bob = await gateway.person("bob@example.org")
    assert (await bob.post("x", "m0")).status == 202


async def test_message_waits_when_the_spawner_is_away(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    tenant = await gateway.tenant_of("ada@example.org")
    gateway.spawner.away = True
    assert (await ada.post("patience", "m1")).json["state"] == "waiting"
    gateway.spawner.away = False
    memory = gateway.spawner.of(tenant).memory
    await until(lambda: list(memory.by_client_id) == ["m1"])


async def test_message_fails_when_the_spawner_stays_away(serve: Serve) -> None:
    gateway = await serve(pending_give_up_s=0.1)
    ada = await gateway.person("ada@example.org")
    gateway.spawner.away = True
    await ada.post("patience", "m1")

    async def failed() -> bool:
        listed = (await ada.api("GET", "/api/pending-messages")).json["messages"]
        return bool(listed[0]["state"] == "failed")

    await until(failed)


async def test_message_is_not_lost_when_the_agent_dies_before_it_answers(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    tenant = await gateway.tenant_of("ada@example.org")
    await ada.post("first", "m1")
    memory = gateway.spawner.of(tenant).memory
    await until(lambda: list(memory.by_client_id) == ["m1"])
    await gateway.spawner.die(tenant)
    assert (await ada.post("second", "m2")).json["state"] == "waiting"
    gateway.spawner.fail(tenant)
    await until(lambda: list(memory.by_client_id) == ["m1", "m2"])


async def test_new_message_queues_behind_one_that_waits(gateway: Gateway) -> None:
    gateway.spawner.waking = "when told"
    ada = await gateway.person("ada@example.org")
    tenant = await gateway.tenant_of("ada@example.org")
    await ada.post("first", "m1")
    await until(lambda: gateway.spawner.of(tenant).state == "starting")
    await gateway.parts.background.close()  # nobody hands over; the first stays where it is
    await gateway.spawner.become_ready(tenant)
    assert (await ada.post("second", "m2")).json["state"] == "waiting"
    memory = gateway.spawner.of(tenant).memory
    await until(lambda: list(memory.by_client_id) == ["m1", "m2"])


NO_MESSAGES: list[object] = [
    {},
    {"client_message_id": "m1"},
    {"client_message_id": "m1", "text": ""},
    {"client_message_id": "m 1", "text": "x"},
    {"client_message_id": "m1", "text": "x" * 32_001},
    {"client_message_id": "m1", "text": "x", "channel": "mail"},
    {"client_message_id": "m1", "text": "x", "source": "schedule"},
    {"client_message_id": "m1", "text": "x", "plan": "plus"},
    {"client_message_id": "m1", "text": 7},
    [],
    None,
]


async def test_message_is_refused_when_it_is_none(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    path = f"/api/conversations/{'c' * 26}/messages"
    for body in NO_MESSAGES:
        assert (await ada.api("POST", path, body)).status == 400, body
    assert await _waiting(gateway) == []


async def test_message_is_refused_when_its_text_is_no_text(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    path = f"/api/conversations/{'c' * 26}/messages"
    headers = {
        "origin": "http://alcove.test",
        "x-csrf-token": ada.csrf,
        "content-type": "application/json",
    }
    for raw in (b'{"client_message_id":"m1","text":"\\ud800"}', b"\xff\xfe", b"{", b"1e999"):
        answer = await ada.send("POST", path, data=raw, headers=headers)
        assert answer.status == 400, raw


async def test_old_messages_are_forgotten_after_seven_days(serve: Serve) -> None:
    clock = FakeClock()
    gateway = await serve(clock=clock)
    gateway.spawner.away = True
    ada = await gateway.person("ada@example.org")
    await ada.post("x", "m1")
    clock.advance(7 * 86_400 + 1)
    async with gateway.parts.db.transaction() as tx:
        assert await gateway.parts.pending.forget_old(tx) == 1
