"""The container engine hangs, dawdles, refuses, breaks, forgets or begins again: who is awake goes on as if
nothing were, who is not is told and kept, and all is well when the engine is."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.kit import ids
from infra.kit.errors import AlcoveError
from tests import scripted as s
from tests.docker.conftest import labelled
from tests.journeys import evidence
from tests.journeys.engine_door import MOODS, Door, Mood, door
from tests.journeys.house import House
from tests.journeys.person import Person
from tests.waiting import until

pytestmark = [pytest.mark.docker, pytest.mark.slow]


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Door]:
    """The door to the engine."""
    async with door(tmp_path / "engine.sock") as made:
        yield made


@pytest.fixture
def house_settings(engine: Door, tmp_path: Path) -> dict[str, str]:
    """The spawner knows the engine by the door alone."""
    return {"DOCKER_HOST": f"unix://{tmp_path}/engine.sock"}


@pytest.fixture(autouse=True)
def mended(house: House, engine: Door) -> Iterator[None]:
    """The house closes with an engine that answers, however its test ended."""
    yield
    engine.be("opens")


async def answered_at_last(person: Person, conversation: str) -> None:
    """Waits for the answer; presses Retry where the wake had failed, as a person does."""

    async def there() -> bool:
        _, pending = await person.call("GET", "/api/pending-messages")
        for message in pending["messages"]:
            if message["state"] == "failed":
                assert message["error"]["message"]
                name = message["client_message_id"]
                await person.call("POST", f"/api/pending-messages/{name}/retries")
        return pending["messages"] == []

    await until(there, timeout_s=90, what="the delivery of what was kept")
    await person.answered(conversation, 1)


async def polled(engine: Door, times: int) -> None:
    """Returns when the engine was asked so often in its mood (or hangs, and is asked no more)."""
    await until(lambda: engine.asked >= times, timeout_s=30, what="the spawner's questions")


@pytest.mark.parametrize("mood", MOODS)
async def test_everybody_is_served_or_kept_when_the_engine_misbehaves(
    house: House,
    scripted: s.ScriptedProvider,
    docker_client: Any,
    engine: Door,
    mood: Mood,
) -> None:
    gate, conversation, hers = s.Gate(), ids.ulid(), ids.ulid()
    scripted.then(s.last_contains("tell me"), reply=s.text("one ", gate, "two"))
    scripted.always(s.last_contains("hello"), reply=s.text("hello to you"))
    async with Person(house.url) as ada, Person(house.url) as bob, Person(house.url) as eve:
        for person in (ada, bob, eve):
            await person.sign_up()
        for person in (ada, eve):
            await person.wake()
        tenant = await evidence.tenant_of(house, ada.email)
        other = await evidence.tenant_of(house, eve.email)
        before = {one.id for one in labelled(docker_client, house.deployment)}
        async with ada.tab() as tab:
            turn = (await ada.say("tell me", conversation))["turn_id"]
            await gate.reached()
            engine.be(mood)
            await polled(engine, 1 if mood == "hangs" else 8)
            gate.open()
            assert (await tab.ended(turn))["type"] == "RUN_FINISHED"
            assert tab.text(turn) == "one two"
            turn = (await ada.say("hello", conversation))["turn_id"]
            await tab.ended(turn)
            async with asyncio.timeout(5):
                kept = await bob.say("hello", hers)
                status, _ = await bob.call("POST", "/api/wake", {"reason": "page"})
                assert (kept["state"], status in (200, 202, 503)) == ("waiting", True)
                await house.spawner.stop(other)
            instance = await house.spawner.instance(tenant)
            assert (instance.state, instance.generation) == ("ready", 1)
            assert before <= {one.id for one in labelled(docker_client, house.deployment)} or (
                mood in ("dawdles", "forgets")  # it was slow, or blind, and yet did as it was told
            )
            engine.be("opens")
            await answered_at_last(bob, hers)

            async def asleep() -> bool:
                return (await house.spawner.instance(other)).state == "stopped"

            await until(asleep, timeout_s=40, what="the stop that was asked for meanwhile")
            turn = (await ada.say("hello", conversation))["turn_id"]
            await tab.ended(turn)
        assert (await house.spawner.instance(tenant)).generation == 1
        assert len(labelled(docker_client, house.deployment)) == 2
    await evidence.all_settled(house)


async def test_starts_pause_and_say_so_when_the_engine_is_gone_and_go_on_when_it_is_back(
    house: House, scripted: s.ScriptedProvider, engine: Door
) -> None:
    conversation = ids.ulid()
    scripted.always(s.last_contains("hello"), reply=s.text("hello to you"))
    async with Person(house.url) as ada:
        await ada.sign_up()
        engine.be("breaks")
        for _ in range(3):
            async with Person(house.url) as other:
                await other.sign_up()
                who = await evidence.tenant_of(house, other.email)
                await other.call("POST", "/api/wake", {"reason": "page"})

                async def failed(who: str = who) -> bool:
                    return (await house.spawner.instance(who)).state == "failed"

                await until(failed, what="a failed start")
        kept = await ada.say("hello", conversation)
        assert kept["state"] == "waiting"
        status, told = await ada.call("POST", "/api/wake", {"reason": "page"})
        assert (status, told["error"]["details"]["reason"]) == (503, "starts_paused")
        assert told["error"]["details"]["retry_after_s"] > 0
        with pytest.raises(AlcoveError):
            await house.spawner.wake(await evidence.tenant_of(house, ada.email), "message")
        engine.be("opens")
        await ada.answered(conversation, 1, timeout_s=60)
