"""kill -9 of every part while a turn streams: the conversation is whole, the ledger settled, nothing restarted
that was not killed, nothing left over."""

import os
import signal
from collections.abc import AsyncIterator

import pytest

from infra.kit import ids
from tests import scripted as s
from tests.journeys import evidence
from tests.journeys.fixtures import ON_BOTH
from tests.journeys.house import House, agent_pids
from tests.journeys.person import Person
from tests.waiting import until

pytestmark = [pytest.mark.thorough, ON_BOTH]


@pytest.fixture
async def ada(house: House) -> AsyncIterator[Person]:
    async with Person(house.url) as ada:
        await ada.sign_up()
        await ada.wake()
        yield ada


async def kill_agent(house: House, tenant: str) -> None:
    """kill -9 of the tenant's agent, as the kernel does when memory runs out."""
    os.kill(agent_pids(house)[tenant], signal.SIGKILL)


@pytest.mark.parametrize("victim", ["gateway", "spawner"])
async def test_turn_ends_whole_when_a_service_beside_it_is_killed(
    house: House, scripted: s.ScriptedProvider, ada: Person, victim: str
) -> None:
    gate, conversation = s.Gate(), ids.ulid()
    scripted.then(s.last_contains("tell me"), reply=s.text("one ", "two ", gate, "three."))
    tenant = await evidence.tenant_of(house, ada.email)
    async with ada.tab() as tab:
        turn = (await ada.say("tell me", conversation))["turn_id"]
        await gate.reached()
        await tab.says(turn, "two ")
        before = agent_pids(house)
        house.kill(victim)
        await house.start_service(victim)
        gate.open()
        ending = await tab.ended(turn)
        assert ending["type"] == "RUN_FINISHED"
        assert tab.text(turn) == "one two three." == evidence.text_in_log(house, tenant, turn)
    assert agent_pids(house) == before
    assert (await house.spawner.instance(tenant)).generation == 1
    [_, answer] = await ada.messages(conversation)
    assert (answer["text"], answer["state"]) == ("one two three.", "complete")
    [entry] = await evidence.entries(house, tenant)
    assert entry["outcome"] == "complete"
    await evidence.all_settled(house)


async def test_turn_says_that_it_broke_when_the_meter_is_killed(
    house: House, scripted: s.ScriptedProvider, ada: Person
) -> None:
    gate, conversation = s.Gate(), ids.ulid()
    scripted.then(s.last_contains("tell me"), reply=s.text("one ", "two ", gate, "three."))
    tenant = await evidence.tenant_of(house, ada.email)
    async with ada.tab() as tab:
        turn = (await ada.say("tell me", conversation))["turn_id"]
        await gate.reached()
        await tab.says(turn, "two ")
        before = agent_pids(house)
        house.kill("metering_proxy")
        await until(
            lambda: scripted.requests[-1].outcome == "left", what="the broken upstream call"
        )
        ending = await tab.ended(turn)
        assert (ending["type"], ending["retryable"]) == ("RUN_ERROR", True)
        await house.start_service("metering_proxy")
        await evidence.all_settled(house)
        scripted.then(s.last_contains("tell me"), reply=s.text("all of it"))
        status, again = await ada.call(
            "POST", f"/api/turns/{turn}/retries", {"client_message_id": ids.ulid()}
        )
        assert status == 202, again
        assert (await tab.ended(again["turn_id"]))["type"] == "RUN_FINISHED"
    assert agent_pids(house) == before
    texts = [m["text"] for m in await ada.messages(conversation) if m["role"] == "assistant"]
    assert texts == ["one two ", "all of it"]
    broken, whole = await evidence.entries(house, tenant)
    assert broken["estimated"] == 1
    assert broken["charge_nanos"] > 0
    assert whole["outcome"] == "complete"
    await evidence.all_settled(house)


async def test_turn_says_that_it_was_interrupted_when_the_agent_is_killed(
    house: House, scripted: s.ScriptedProvider, ada: Person
) -> None:
    gate, conversation = s.Gate(), ids.ulid()
    scripted.then(s.last_contains("tell me"), reply=s.text("one ", "two ", gate, "three."))
    tenant = await evidence.tenant_of(house, ada.email)
    async with ada.tab() as tab:
        turn = (await ada.say("tell me", conversation))["turn_id"]
        await gate.reached()
        await tab.says(turn, "two ")
        await kill_agent(house, tenant)
        gate.open()
        scripted.then(s.last_contains("still there"), reply=s.text("yes"))
        second = await ada.say("are you still there", conversation)
        ending = await tab.ended(turn)
        assert (ending["type"], ending["code"], ending["retryable"]) == (
            "RUN_ERROR",
            "interrupted",
            True,
        )
        await ada.answered(conversation, 2)
        assert tab.text(turn) == "one two "
    assert second["state"] in ("waiting", "queued", "running")
    answers = [m for m in await ada.messages(conversation) if m["role"] == "assistant"]
    assert [(m["text"], m["state"]) for m in answers] == [
        ("one two ", "interrupted"),
        ("yes", "complete"),
    ]
    assert (await house.spawner.instance(tenant)).generation == 2
    assert len(agent_pids(house)) == 1
    await evidence.all_settled(house)
    assert len(await evidence.entries(house, tenant)) == 2


async def test_waiting_message_is_answered_when_gateway_and_spawner_were_killed(
    house: House, scripted: s.ScriptedProvider
) -> None:
    conversation, mine = ids.ulid(), ids.ulid()
    scripted.then(s.last_contains("patient"), reply=s.text("here I am"))
    async with Person(house.url) as ada:
        await ada.sign_up()
        house.kill("spawner")
        answer = await ada.say("I am patient", conversation, mine)
        assert answer["state"] == "waiting"
        again = await ada.say("I am patient", conversation, mine)
        assert again["state"] == "waiting"
        house.kill("gateway")
        await house.start_service("spawner")
        await house.start_service("gateway")
        await ada.answered(conversation, 1)
        first, second = await ada.messages(conversation)
        assert (first["text"], second["text"]) == ("I am patient", "here I am")
        status, pending = await ada.call("GET", "/api/pending-messages")
        assert (status, pending["messages"]) == (200, [])
    assert (await evidence.rows(house, "gateway", "SELECT count(*) AS n FROM pending_message"))[0][
        "n"
    ] == 0
    assert len(scripted.model_requests) == 1


async def test_agent_is_found_again_and_not_restarted_when_everything_else_restarts(
    house: House, scripted: s.ScriptedProvider, ada: Person
) -> None:
    conversation = ids.ulid()
    scripted.then(s.last_contains("before"), reply=s.text("first"))
    scripted.then(s.last_contains("after"), reply=s.text("second"))
    before = agent_pids(house)
    async with ada.tab() as tab:
        await tab.ended((await ada.say("before", conversation))["turn_id"])
        for service in ("gateway", "spawner", "metering_proxy"):
            house.kill(service)
        for service in ("metering_proxy", "spawner", "gateway"):
            await house.start_service(service)
        turn = (await ada.say("after", conversation))["turn_id"]
        assert (await tab.ended(turn))["type"] == "RUN_FINISHED"
    assert agent_pids(house) == before
    assert len(await ada.messages(conversation)) == 4
    await evidence.all_settled(house)


async def test_agent_is_replaced_at_the_next_message_when_it_died_idle(
    house: House, scripted: s.ScriptedProvider, ada: Person
) -> None:
    conversation = ids.ulid()
    scripted.then(s.last_contains("hello again"), reply=s.text("hello"))
    tenant = await evidence.tenant_of(house, ada.email)
    await kill_agent(house, tenant)
    async with ada.tab():
        await ada.say("hello again", conversation)
        await ada.answered(conversation, 1)
    assert [m["text"] for m in await ada.messages(conversation)] == ["hello again", "hello"]
    assert (await house.spawner.instance(tenant)).generation == 2
