"""Tabs that nobody looks at: the agent sleeps on time and no stream wakes it, for a day of reconnections."""

from contextlib import AsyncExitStack

import pytest

from infra.kit import ids
from tests import scripted as s
from tests.journeys import evidence
from tests.journeys.house import House, agent_pids
from tests.journeys.person import Person
from tests.waiting import until

pytestmark = pytest.mark.slow
# The gateway ends a stream after ten minutes, so a tab that stays open for a day connects so often.
CONNECTIONS_A_DAY = 144


@pytest.fixture
def house_settings() -> dict[str, str]:
    return {"ALCOVE_SPAWNER_IDLE_S": "1"}


async def test_agent_sleeps_and_stays_asleep_when_two_tabs_are_open_all_day(
    house: House, scripted: s.ScriptedProvider
) -> None:
    scripted.then(s.last_contains("good night"), reply=s.text("sleep well"))
    scripted.then(s.last_contains("good morning"), reply=s.text("welcome back"))
    conversation = ids.ulid()
    async with Person(house.url) as ada:
        await ada.sign_up()
        await ada.wake()
        tenant = await evidence.tenant_of(house, ada.email)
        async with ada.tab() as one, ada.tab() as two:
            await one.ended((await ada.say("good night", conversation))["turn_id"])

            async def sleeps() -> bool:
                return (await house.spawner.instance(tenant)).state == "stopped"

            await until(sleeps, timeout_s=15, what="the agent's sleep")
            assert agent_pids(house) == {}
            asleep = await _events(house, tenant)
            assert two.named("instance")
        async with AsyncExitStack() as day:
            for tab in (one, two):
                for _ in range(CONNECTIONS_A_DAY - 1):
                    opened = tab.opened
                    async with ada.tab(tab):
                        await until(lambda t=tab, o=opened: t.opened > o)
                await day.enter_async_context(ada.tab(tab))
            assert await _events(house, tenant) == asleep
            assert agent_pids(house) == {}
            instance = await house.spawner.instance(tenant)
            assert (instance.state, instance.generation) == ("stopped", 1)
            await ada.say("good morning", conversation)
            await ada.answered(conversation, 2)
        assert len(await ada.messages(conversation)) == 4
    assert (await house.spawner.instance(tenant)).generation == 2


async def _events(house: House, tenant: str) -> int:
    found = await evidence.rows(
        house, "spawner", "SELECT seq FROM instance WHERE tenant = :t", t=tenant
    )
    return int(found[0]["seq"])
