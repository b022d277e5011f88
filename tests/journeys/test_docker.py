"""The same house with containers: nothing but its own sockets is in reach of an agent, and a container that
was removed by hand is replaced."""

import json
from typing import Any

import pytest

from infra.kit import ids
from tests import scripted as s
from tests.docker.conftest import labelled
from tests.journeys import evidence
from tests.journeys.house import House
from tests.journeys.person import Person

pytestmark = [pytest.mark.docker, pytest.mark.slow]

# Run inside a tenant's container: what it can see and reach, as JSON.
LOOK = """
import json, os, socket
found = {"interfaces": sorted(os.listdir("/sys/class/net")), "sockets": [], "reached": []}
for top, _, names in os.walk("/run"):
    found["sockets"] += [os.path.join(top, n) for n in names if n.endswith(".sock")]
for host, port in (("1.1.1.1", 443), ("169.254.169.254", 80), ("172.17.0.1", 22), ("127.0.0.1", 8000)):
    probe = socket.socket(); probe.settimeout(1)
    try:
        probe.connect((host, port)); found["reached"].append(host)
    except OSError:
        pass
try:
    socket.getaddrinfo("example.org", 80); found["reached"].append("dns")
except OSError:
    pass
found["docker"] = os.path.exists("/var/run/docker.sock")
found["uid"] = os.getuid()
try:
    open("/etc/x", "w"); found["root_writable"] = True
except OSError:
    found["root_writable"] = False
try:
    open("/run/alcove/meter/x", "w"); found["meter_writable"] = True
except OSError:
    found["meter_writable"] = False
print(json.dumps(found))
"""


async def test_agent_in_a_container_answers_and_reaches_nothing_else(
    house: House, scripted: s.ScriptedProvider, docker_client: Any
) -> None:
    conversation = ids.ulid()
    scripted.then(s.last_contains("hello"), reply=s.text("hello from inside"))
    async with Person(house.url) as ada:
        await ada.sign_up()
        await ada.wake()
        async with ada.tab() as tab:
            await tab.ended((await ada.say("hello", conversation))["turn_id"])
        assert [m["text"] for m in await ada.messages(conversation)] == [
            "hello",
            "hello from inside",
        ]
    [container] = labelled(docker_client, house.deployment)
    code, output = container.exec_run(["python3", "-c", LOOK])
    assert code == 0, output
    found = json.loads(output)
    assert found["interfaces"] == ["lo"]
    assert found["reached"] == []
    assert sorted(found["sockets"]) == [
        "/run/alcove/agent/agent.sock",
        "/run/alcove/meter/meter.sock",
    ]
    assert (found["docker"], found["root_writable"], found["meter_writable"]) == (False,) * 3
    assert found["uid"] == 10001
    await evidence.all_settled(house)


async def test_container_is_replaced_at_the_next_message_when_it_was_removed_by_hand(
    house: House, scripted: s.ScriptedProvider, docker_client: Any
) -> None:
    conversation = ids.ulid()
    scripted.then(s.last_contains("before"), reply=s.text("one"))
    scripted.then(s.last_contains("after"), reply=s.text("two"))
    async with Person(house.url) as ada:
        await ada.sign_up()
        await ada.wake()
        async with ada.tab() as tab:
            await tab.ended((await ada.say("before", conversation))["turn_id"])
            [container] = labelled(docker_client, house.deployment)
            container.remove(force=True)
            await ada.say("after", conversation)
            await ada.answered(conversation, 2)
        texts = [m["text"] for m in await ada.messages(conversation)]
    assert texts == ["before", "one", "after", "two"]
    [replaced] = labelled(docker_client, house.deployment)
    assert replaced.id != container.id


@pytest.mark.parametrize("victim", ["gateway", "spawner", "metering_proxy"])
async def test_container_lives_on_when_a_service_is_killed_in_mid_answer(
    house: House, scripted: s.ScriptedProvider, docker_client: Any, victim: str
) -> None:
    gate, conversation = s.Gate(), ids.ulid()
    scripted.then(s.last_contains("tell me"), reply=s.text("one ", gate, "two"))
    async with Person(house.url) as ada:
        await ada.sign_up()
        await ada.wake()
        [before] = labelled(docker_client, house.deployment)
        async with ada.tab() as tab:
            turn = (await ada.say("tell me", conversation))["turn_id"]
            await gate.reached()
            await tab.says(turn, "one ")
            house.kill(victim)
            await house.start_service(victim)
            gate.open()
            ending = await tab.ended(turn)
        shown = [(m["text"], m["state"]) for m in await ada.messages(conversation)][1:]
    if victim == "metering_proxy":
        # What went through it is cut; the person is told, and may try again.
        assert (ending["type"], ending["retryable"]) == ("RUN_ERROR", True)
        assert shown == [("one ", "failed")]
    else:
        assert ending["type"] == "RUN_FINISHED"
        assert shown == [("one two", "complete")]
    [after] = labelled(docker_client, house.deployment)
    assert (after.id, after.attrs["State"]["StartedAt"]) == (
        before.id,
        before.attrs["State"]["StartedAt"],
    )
    await evidence.all_settled(house)


async def test_turn_says_that_it_was_interrupted_when_its_container_is_killed(
    house: House, scripted: s.ScriptedProvider, docker_client: Any
) -> None:
    gate, conversation = s.Gate(), ids.ulid()
    scripted.then(s.last_contains("tell me"), reply=s.text("one ", gate, "two"))
    async with Person(house.url) as ada:
        await ada.sign_up()
        await ada.wake()
        [before] = labelled(docker_client, house.deployment)
        async with ada.tab() as tab:
            turn = (await ada.say("tell me", conversation))["turn_id"]
            await gate.reached()
            await tab.says(turn, "one ")
            before.kill()
            gate.open()
            ending = await tab.ended(turn, timeout_s=40)
        assert (ending["type"], ending["code"]) == ("RUN_ERROR", "interrupted")
        shown = [(m["text"], m["state"]) for m in await ada.messages(conversation)][1:]
    assert shown == [("one ", "interrupted")]
    [after] = labelled(docker_client, house.deployment)
    assert after.id != before.id
    await evidence.all_settled(house)
    assert len(await evidence.entries(house, await evidence.tenant_of(house, ada.email))) == 1
