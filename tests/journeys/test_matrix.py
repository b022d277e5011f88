"""The fault matrix, whole: each part is killed at each point of a turn, and the same things hold after all.

`make soak` runs it; the inner loop has one point of each in test_survival.py.
"""

import os
import signal

import pytest

from infra.kit import ids
from tests import scripted as s
from tests import tally
from tests.journeys import evidence
from tests.journeys.fixtures import ON_BOTH
from tests.journeys.house import SERVICES, House, agent_pids
from tests.journeys.person import Person, Tab
from tests.waiting import until

pytestmark = [pytest.mark.soak, ON_BOTH]
POINTS = ("before the first word", "between words", "while a tool's answer is read")


def script_until(scripted: s.ScriptedProvider, point: str, gate: s.Gate) -> None:
    """The steps of a turn that stands still at `point` until the gate opens."""
    asked = s.last_contains("tell me")
    if point == "before the first word":
        scripted.then(asked, reply=s.text(gate, "one ", "two."))
    elif point == "between words":
        scripted.then(asked, reply=s.text("one ", gate, "two."))
    else:
        scripted.then(asked, reply=s.calls("Looking. ", s.call("current_time", zone="UTC")))
        scripted.then(s.has_result("UTC"), reply=s.text(gate, "It is late."))


async def kill(house: House, victim: str, tenant: str) -> None:
    """kill -9 of the victim, and what an init or an orchestrator does next."""
    if victim == "agent":
        os.kill(agent_pids(house)[tenant], signal.SIGKILL)
        tally.count("kills")
        return
    house.kill(victim)
    await house.start_service(victim)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("victim", [*SERVICES, "agent"])
async def test_everything_holds_when_a_part_is_killed_at_a_point(
    house: House, scripted: s.ScriptedProvider, victim: str, point: str
) -> None:
    gate, conversation = s.Gate(), ids.ulid()
    script_until(scripted, point, gate)
    # A turn that showed nothing yet may be asked again by an agent that resumes it.
    scripted.always(s.last_contains("tell me"), reply=s.text("said once more."))
    scripted.always(s.has_result("UTC"), reply=s.text("said once more."))
    scripted.always(s.last_contains("and now"), reply=s.text("here I am."))
    async with Person(house.url) as ada:
        await ada.sign_up()
        await ada.wake()
        tenant = await evidence.tenant_of(house, ada.email)
        async with ada.tab() as tab:
            turn = (await ada.say("tell me", conversation))["turn_id"]
            await gate.reached()
            await kill(house, victim, tenant)
            gate.open()
            await ada.say("and now?", conversation)
            await tab.ended(turn, timeout_s=40)
            await ada.answered(conversation, 2)
        await _nothing_is_lost(house, tenant, ada, conversation, tab)
    await evidence.all_settled(house)
    assert len(agent_pids(house)) == 1
    assert len(await evidence.entries(house, tenant)) == len(scripted.model_requests)


async def _nothing_is_lost(
    house: House, tenant: str, ada: Person, conversation: str, tab: Tab
) -> None:
    messages = await ada.messages(conversation)
    assert [m["role"] for m in messages] == ["user", "assistant"] * 2
    assert messages[-1]["state"] == "complete"
    for message in messages:
        if message["role"] == "assistant":
            assert message["state"] in ("complete", "interrupted", "failed")
            logged = evidence.text_in_log(house, tenant, message["turn_id"])
            assert message["text"] == logged
            await until(lambda m=message: tab.text(m["turn_id"]) == m["text"])
    seqs = [event["seq"] for event in evidence.log_of(house, tenant)]
    assert seqs == sorted(set(seqs))
    states = evidence.agent_rows(house, tenant, "SELECT state FROM turn WHERE ended_at IS NULL")
    assert states == []
