"""A killed agent loses nothing: after a restart each turn has one ending and the conversation is whole."""

import asyncio
import os
import signal
import time
from typing import Any

import aiohttp
import pytest

from infra.kit import ids
from tests import scripted as s
from tests.agent.conftest import Home
from tests.agent.meter import ScriptedMeter
from tests.agent.person import Frame, Person, is_end_of
from tests.agent.process import running
from tests.waiting import until

pytestmark = pytest.mark.thorough

CLIENT_ID = "01hzyyyyyyyyyyyyyyyyyyyyyy"


async def post(person: Person, conversation: str, text: str, client_id: str) -> Any:
    """Posts and takes what comes: the agent may die before it answers."""
    try:
        return await person.say(text, conversation, client_id)
    except (OSError, aiohttp.ClientError):
        return None


async def whole(person: Person, conversation: str, turn: str) -> tuple[Frame, dict[str, Any]]:
    """The turn's end and the conversation, checked: one ending, one of each message, the log as the rows."""
    frames = await person.ended(turn)
    marker = await person.ask("PUT", f"/api/conversations/{ids.ulid()}", json={})
    last = await person.follow(lambda f: f["conversation_id"] == marker.body["id"])
    assert len([f for f in last if is_end_of(turn)(f)]) == 1
    assert len([f for f in last if f["type"] == "RUN_STARTED"]) == 1
    page = await person.messages(conversation)
    assert [m["role"] for m in page["messages"]] == ["user", "assistant"]
    said = "".join(f["delta"] for f in last if f["type"] == "TEXT_MESSAGE_CONTENT")
    assert page["messages"][1]["text"] == said
    assert page["messages"][1] == frames[-1]["message"]
    assert all(t["state"] != "running" for t in page["messages"][1]["tools"])
    return frames[-1], page


@pytest.mark.parametrize("point", ["after_receive", "before_tool", "after_tool", "after_model"])
async def test_turn_is_finished_by_the_next_process_when_nothing_was_shown(
    home: Home, meter: ScriptedMeter, point: str
) -> None:
    conversation = ids.ulid()
    call = s.calls(s.call("save_note", title="milk", text="buy milk"))
    meter.then(s.last_contains("note it"), reply=call)
    if (
        point == "after_model"
    ):  # dies with the model's answer in its hands: the answer is asked for again
        meter.then(s.last_contains("note it"), reply=call)
    meter.then(s.has_result("Saved"), reply=s.text("Noted."))
    async with running(home, fault=point) as agent:
        receipt = await post(agent.person, conversation, "note it", CLIENT_ID)
        assert await agent.died() == -signal.SIGKILL
        assert (receipt is None) == (point == "after_receive")
    async with running(home) as agent:
        again = await agent.person.say("note it", conversation, CLIENT_ID)
        end, page = await whole(agent.person, conversation, again["turn_id"])
        assert end["outcome"] == "complete"
        assert page["messages"][1]["text"] == "Noted."
        assert len(page["messages"][1]["tools"]) == 1
        meter.then(reply=s.calls(s.call("list_notes")))
        meter.then(
            s.that("one note", lambda r: r.last_text.count("buy milk") == 1), reply=s.text("one")
        )
        assert (await agent.person.answer_to("list"))["text"] == "one"


async def test_turn_says_that_it_was_interrupted_when_words_were_shown(
    home: Home, meter: ScriptedMeter
) -> None:
    conversation = ids.ulid()
    meter.then(reply=s.text("The answer is ", "forty-two."))
    async with running(home, fault="before_reply_publish") as agent:
        await post(agent.person, conversation, "what is it?", CLIENT_ID)
        await agent.died()
    async with running(home) as agent:
        turn = (await agent.person.say("what is it?", conversation, CLIENT_ID))["turn_id"]
        end, page = await whole(agent.person, conversation, turn)
        assert (end["type"], end["code"], end["retryable"]) == ("RUN_ERROR", "interrupted", True)
        assert page["messages"][1]["state"] == "interrupted"
        assert page["messages"][1]["text"] == "The answer is forty-two."
        meter.then(s.last_contains("and now?"), reply=s.text("it works"))
        assert (await agent.person.answer_to("and now?", conversation))["text"] == "it works"


async def test_words_so_far_are_kept_when_the_process_is_killed_in_mid_answer(
    home: Home, meter: ScriptedMeter
) -> None:
    conversation, gate = ids.ulid(), s.Gate()
    meter.then(reply=s.text("once upon ", gate, "a time"))
    async with running(home) as agent:
        turn = (await agent.person.say("story", conversation))["turn_id"]
        seen = await agent.person.follow(lambda f: f["type"] == "TEXT_MESSAGE_CONTENT")
        queued = (await agent.person.say("queued", conversation))["turn_id"]
        os.kill(agent.child.pid, signal.SIGKILL)
        await agent.died()
    meter.then(s.last_contains("queued"), reply=s.text("second"))
    async with running(home) as agent:
        rest = await agent.person.ended(queued, after=seen[-1]["seq"])
        assert [f["seq"] for f in rest] == list(range(seen[-1]["seq"] + 1, rest[-1]["seq"] + 1))
        (end,) = [f for f in rest if is_end_of(turn)(f)]
        assert (end["code"], end["message"]["text"]) == ("interrupted", "once upon ")
        assert rest[-1]["message"]["text"] == "second"


async def test_stop_outlives_the_process_that_it_was_given_to(
    home: Home, meter: ScriptedMeter
) -> None:
    """Killed between the wish and the ending: the next process does not take the turn up again."""
    import sqlite3

    gate = s.Gate()
    meter.then(reply=s.text(gate, "never"))
    async with running(home) as agent:
        turn = (await agent.person.say("go"))["turn_id"]
        await gate.reached()
        os.kill(agent.child.pid, signal.SIGKILL)
        await agent.died()
    with sqlite3.connect(home.data / "agent.db") as db:
        db.execute("UPDATE turn SET cancel_requested = 1 WHERE id = ?", (turn,))
    db.close()
    async with running(home) as agent:
        assert (await agent.person.ended(turn))[-1]["outcome"] == "stopped"


async def test_turn_is_given_up_when_it_has_killed_the_process_three_times(
    home: Home, meter: ScriptedMeter
) -> None:
    conversation = ids.ulid()
    meter.always(reply=s.calls(s.call("current_time")))
    for _ in range(3):
        try:
            async with running(home, fault="after_model") as agent:
                await post(agent.person, conversation, "poison", CLIENT_ID)
                await agent.died()
        except (AssertionError, OSError, aiohttp.ClientError):
            continue  # it died before it had answered for the first time
    async with running(home) as agent:
        turn = (await agent.person.say("poison", conversation, CLIENT_ID))["turn_id"]
        end, _ = await whole(agent.person, conversation, turn)
        assert end["code"] == "interrupted"


async def test_process_leaves_in_time_and_without_error_when_it_is_told_to(
    home: Home, meter: ScriptedMeter
) -> None:
    gate, stuck = s.Gate(), s.Gate()
    meter.then(s.last_contains("quick"), reply=s.text("soon ", gate, "done"))
    meter.then(s.last_contains("slow"), reply=s.text("never ", stuck, "done"))
    async with running(home) as agent:
        person = agent.person
        quick = (await person.say("quick"))["turn_id"]
        await gate.reached()
        slow = (await person.say("slow"))["turn_id"]
        await stuck.reached()
        follower = asyncio.create_task(person.ended(quick))
        await until(lambda: len(meter.model_requests) == 2)
        began = time.monotonic()
        agent.child.terminate()

        async def refuses() -> bool:
            path = f"/api/conversations/{ids.ulid()}/messages"
            body = {"client_message_id": ids.ulid(), "text": "late"}
            answer = await person.ask("POST", path, json=body)
            return (
                answer.status == 503
                and answer.body["error"]["details"]["reason"] == "agent_stopping"
            )

        await until(refuses)
        gate.open()  # a turn that can end still ends, and its reader is told
        assert (await follower)[-1]["outcome"] == "complete"
        assert await agent.died() == 0
        assert time.monotonic() - began < 5
    async with running(home) as agent:
        assert (await agent.person.ended(slow))[-1]["code"] == "interrupted"
        assert (await agent.person.status())["in_flight"] == 0


async def test_process_needs_its_socket_directory_no_more_when_it_answers(
    home: Home, meter: ScriptedMeter
) -> None:
    meter.then(reply=s.text("fine"))
    async with running(home) as agent:
        home.agent.chmod(0o555)
        assert (home.agent / "agent.sock").stat().st_mode & 0o777 == 0o660
        assert (await agent.person.answer_to("hello"))["text"] == "fine"
        agent.child.terminate()
        assert await agent.died() == 0
        home.agent.chmod(0o755)


async def test_no_word_of_the_person_is_logged(home: Home, meter: ScriptedMeter) -> None:
    meter.then(
        reply=s.calls(
            s.call("save_note", title="canary-title", text="canary-note"),
            s.Call("current_time", "canary=x"),
        )
    )
    meter.then(reply=s.text("canary-answer"))
    meter.then(reply=s.error(400, "canary-error"))
    async with running(home, ALCOVE_AGENT_LOG_LEVEL="debug") as agent:
        await agent.person.answer_to("canary-question")
        await agent.person.answer_to("canary-question")
        agent.child.terminate()
        await agent.died()
    log = (home.data / "log").read_text()
    assert '"event": "turn ended"' in log
    assert "canary" not in log
    assert "ak-test-key" not in log
