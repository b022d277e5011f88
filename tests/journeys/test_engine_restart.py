"""The container engine itself is killed, or stopped in good order, and begins again while a turn streams."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from infra.kit import ids
from tests import scripted as s
from tests.docker.conftest import labelled
from tests.journeys import evidence
from tests.journeys.house import House
from tests.journeys.person import Person
from tests.journeys.private_engine import PrivateEngine, private_engine

pytestmark = [pytest.mark.docker, pytest.mark.slow]


@pytest.fixture
async def engine(agent_image: str) -> AsyncIterator[PrivateEngine]:
    """An engine of the test's own that has the agent's image."""
    root = Path(tempfile.mkdtemp(prefix="alc-e-", dir="/var/tmp"))
    async with private_engine(root, agent_image) as made:
        yield made


@pytest.fixture
def house_settings(engine: PrivateEngine) -> dict[str, str]:
    """The house is on that engine."""
    return {"DOCKER_HOST": engine.url}


@pytest.mark.parametrize("ends", ["killed", "stopped"])
async def test_conversation_is_whole_when_the_engine_is_restarted_in_mid_answer(
    house: House, scripted: s.ScriptedProvider, engine: PrivateEngine, ends: str
) -> None:
    import docker

    gate, conversation = s.Gate(), ids.ulid()
    scripted.then(s.last_contains("tell me"), reply=s.text("one ", gate, "two"))
    scripted.always(s.last_contains("tell me"), reply=s.text("once more"))
    scripted.always(s.last_contains("hello"), reply=s.text("hello to you"))
    async with Person(house.url) as ada:
        await ada.sign_up()
        await ada.wake()
        async with ada.tab() as tab:
            turn = (await ada.say("tell me", conversation))["turn_id"]
            await gate.reached()
            await tab.says(turn, "one ")
            if ends == "killed":
                engine.kill()
            else:
                await engine.stop()
            await ada.say("hello", conversation)
            gate.open()
            await engine.start()
            ending = await tab.ended(turn, timeout_s=60)
            assert ending["type"] == "RUN_FINISHED" or (
                (ending["code"], ending["retryable"]) == ("interrupted", True)
            )
            await ada.answered(conversation, 2, timeout_s=60)
        shown = [(m["role"], m["state"]) for m in await ada.messages(conversation)]
        assert [role for role, _ in shown] == ["user", "assistant"] * 2
        assert shown[-1] == ("assistant", "complete")
    client = docker.DockerClient(base_url=engine.url)
    try:
        assert len(await asyncio.to_thread(labelled, client, house.deployment)) == 1
    finally:
        client.close()
    await evidence.all_settled(house)
