"""A hostile agent in a living house of containers: whatever it does, its neighbour is served as before, no
service is brought down, and its tenant can be put to sleep."""

import asyncio
import io
import tarfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from infra.kit import ids
from tests import scripted as s
from tests.journeys import evidence, hostile
from tests.journeys.house import House
from tests.journeys.person import Person, Tab
from tests.waiting import stretch, until

pytestmark = [pytest.mark.docker, pytest.mark.slow]
_DOCKERFILE = """
FROM {base}
COPY hostile.py /hostile.py
CMD ["python", "/hostile.py"]
"""
MADE = "alcove-test-hostile:local"


@pytest.fixture(scope="module")
def image(docker_client: Any, agent_image: str) -> str:
    """The agent's image, with an agent in it that its tenant can make hostile."""
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        for name, raw in (
            ("Dockerfile", _DOCKERFILE.format(base=agent_image).encode()),
            ("hostile.py", Path(hostile.__file__).read_bytes()),
        ):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(raw), 0o644
            tar.addfile(entry, io.BytesIO(raw))
    context.seek(0)
    docker_client.images.build(fileobj=context, custom_context=True, tag=MADE, rm=True)
    return MADE


@pytest.fixture
def house_settings(image: str) -> dict[str, str]:
    """Agents are real until their tenant's data says otherwise."""
    return {"ALCOVE_AGENT_IMAGE": image}


async def _bothers(eve: Person) -> None:
    """Her pages ask as fast as they can, and she writes too."""
    while True:
        await eve.call("GET", "/api/conversations")
        await eve.call("GET", "/api/memory")
        body = {"client_message_id": ids.ulid(), "text": "x", "channel": "web", "source": "user"}
        await eve.call("POST", f"/api/conversations/{hostile.CONVERSATION}/messages", body)


@asynccontextmanager
async def bothering(house: House, kind: str, neighbour: str) -> AsyncIterator[tuple[str, Tab]]:
    """Somebody whose agent is hostile, with a tab and four scripts that ask, while the block runs."""
    async with Person(house.url) as eve:
        await eve.sign_up()
        tenant = await evidence.tenant_of(house, eve.email)
        data = house.root / "tenants" / tenant
        data.mkdir(mode=0o777)
        (data / "kind").write_text(kind)
        (data / "neighbour").write_text(neighbour)
        await eve.wake()
        async with eve.tab() as tab, asyncio.TaskGroup() as scripts:
            tasks = [scripts.create_task(_bothers(eve)) for _ in range(4)]
            yield tenant, tab
            for task in tasks:
                task.cancel()


async def slowest_answer_s(house: House, times: int = 40) -> float:
    """The longest that the gateway takes to say that it lives."""
    longest_s = 0.0
    async with aiohttp.ClientSession() as nobody:
        for _ in range(times):
            began_s = time.monotonic()
            async with nobody.get(f"{house.url}/livez") as response:
                assert response.status == 200
            longest_s = max(longest_s, time.monotonic() - began_s)
            await stretch(0.02)
    return longest_s


@pytest.mark.parametrize("kind", hostile.KINDS)
async def test_neighbour_is_served_and_nothing_falls_when_an_agent_is_hostile(
    house: House, scripted: s.ScriptedProvider, docker_client: Any, kind: str
) -> None:
    conversation = ids.ulid()
    scripted.always(s.last_contains("hello"), reply=s.text("hello ", "to ", "you"))
    async with Person(house.url) as ada:
        await ada.sign_up()
        await ada.wake()
        hers = await evidence.tenant_of(house, ada.email)
        async with ada.tab() as tab, bothering(house, kind, conversation) as (tenant, his):
            assert await slowest_answer_s(house) < 1.5
            for _ in range(3):
                began_s = time.monotonic()
                turn = (await ada.say("hello", conversation))["turn_id"]
                await tab.ended(turn)
                assert time.monotonic() - began_s < 5
                assert tab.text(turn) == "hello to you"
            assert "FORGED" not in str(tab.events)
            assert not his.named("signed_out")
            await house.spawner.stop(tenant)

            async def sleeps() -> bool:
                return (await house.spawner.instance(tenant)).state in (
                    "stopped",
                    "creating",
                    "failed",
                )

            await until(sleeps, timeout_s=30, what="the hostile one's end")
        assert (await house.spawner.instance(hers)).generation == 1
        await house.spawner.suspend(tenant)

        async def gone() -> bool:
            asked = {"label": f"alcove.deployment={house.deployment}"}
            found = await asyncio.to_thread(docker_client.api.containers, all=True, filters=asked)
            return len(found) == 1

        await until(gone, timeout_s=30, what="the hostile container's removal")
    await evidence.all_settled(house)
