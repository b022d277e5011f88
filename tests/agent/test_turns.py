"""Turns over the real socket: streamed, ordered, deduplicated, stopped; each with exactly one ending."""

import asyncio
import time

import pytest

from infra.kit import ids
from tests import scripted as s
from tests.agent.meter import ScriptedMeter
from tests.agent.person import Frame, Person, is_end_of, text_of
from tests.scripted.request import Request
from tests.waiting import until


def kinds(frames: list[Frame], turn_id: str) -> list[str]:
    """The types of a turn's frames."""
    return [f["type"] for f in frames if f["turn_id"] == turn_id]


async def test_answer_is_streamed_and_kept_when_a_message_is_posted(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(s.last_contains("hello"), reply=s.text("Hi ", "there, ", "friend."))
    receipt = await person.say("hello")
    turn = receipt["turn_id"]
    frames = await person.ended(turn)
    assert text_of(frames, turn) == "Hi there, friend."
    assert kinds(frames, turn)[:3] == ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"]
    assert kinds(frames, turn)[-2:] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
    assert [f["seq"] for f in frames] == list(range(1, len(frames) + 1))
    page = await person.messages(receipt["conversation_id"])
    assert [(m["role"], m["text"], m["state"]) for m in page["messages"]] == [
        ("user", "hello", "complete"),
        ("assistant", "Hi there, friend.", "complete"),
    ]
    assert page["messages"][1] == frames[-1]["message"]
    assert page["messages"][1]["model"] == "scripted/model-1"
    sent = meter.model_requests[0].headers
    assert sent["authorization"] == "Bearer ak-test-key"


async def test_turn_goes_on_when_nobody_is_connected(person: Person, meter: ScriptedMeter) -> None:
    gate = s.Gate()
    meter.then(reply=s.text("one ", gate, "two"))
    receipt = await person.say("hello")
    await gate.reached()
    assert (await person.status())["in_flight"] == 1
    gate.open()

    async def is_over() -> bool:
        return (await person.status())["in_flight"] == 0

    await until(is_over)
    assert (await person.status())["unread"] == 1
    frames = await person.ended(receipt["turn_id"])
    assert frames[-1]["message"]["text"] == "one two"

    async def is_read() -> bool:
        return (await person.status())["unread"] == 0

    await until(is_read)


async def test_lanes_interleave_and_keep_their_order_when_two_conversations_talk(
    person: Person, meter: ScriptedMeter
) -> None:
    gates = {word: s.Gate() for word in ("a1", "b1")}

    def answer(request: Request) -> s.Reply:
        said = request.last_text.rsplit("\n", 1)[-1]
        gate = gates.get(said)
        return s.text("re ", gate, said) if gate else s.text("re ", said)

    meter.always(reply=answer)
    first, second = ids.ulid(), ids.ulid()
    turns: dict[str, str] = {}
    for number in (1, 2, 3):
        for letter, conversation in (("a", first), ("b", second)):
            word = f"{letter}{number}"
            turns[word] = (await person.say(word, conversation))["turn_id"]
    await gates["a1"].reached()
    await gates["b1"].reached()  # both lanes run at once
    gates["b1"].open()
    await person.ended(turns["b3"])  # the second lane does not wait for the first
    gates["a1"].open()
    frames = await person.ended(turns["a3"])
    for letter, conversation in (("a", first), ("b", second)):
        page = await person.messages(conversation)
        expected = [text for n in (1, 2, 3) for text in (f"{letter}{n}", f"re {letter}{n}")]
        assert [m["text"] for m in page["messages"]] == expected
    ends = [f["turn_id"] for f in frames if f["type"] in ("RUN_FINISHED", "RUN_ERROR")]
    assert sorted(ends) == sorted(turns.values())
    asked = [r.last_text.rsplit("\n", 1)[-1] for r in meter.model_requests]
    assert [w for w in asked if w[0] == "a"] == ["a1", "a2", "a3"]


async def test_message_is_one_turn_when_it_is_posted_twice(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(reply=s.text("once"))
    conversation, client_id = ids.ulid(), ids.ulid()
    receipts = await asyncio.gather(*(person.say("hi", conversation, client_id) for _ in range(5)))
    assert len({(r["turn_id"], r["message_id"]) for r in receipts}) == 1
    await person.ended(receipts[0]["turn_id"])
    again = await person.say("hi", conversation, client_id)
    assert again["turn_id"] == receipts[0]["turn_id"]
    assert again["state"] == "complete"
    assert len((await person.messages(conversation))["messages"]) == 2


@pytest.mark.parametrize("other", ["text", "place"])
async def test_conflict_when_a_known_client_id_means_another_message(
    person: Person, meter: ScriptedMeter, other: str
) -> None:
    meter.then(reply=s.text("x"))
    conversation, client_id = ids.ulid(), ids.ulid()
    await person.ended((await person.say("hi", conversation, client_id))["turn_id"])
    place = conversation if other == "text" else ids.ulid()
    body = {"client_message_id": client_id, "text": "ho" if other == "text" else "hi"}
    answer = await person.ask("POST", f"/api/conversations/{place}/messages", json=body)
    assert (answer.status, answer.body["error"]["code"]) == (409, "conflict")


async def test_stop_keeps_the_part_and_hangs_up_when_the_model_is_speaking(
    person: Person, meter: ScriptedMeter
) -> None:
    gate = s.Gate()
    meter.then(reply=s.text("the part ", gate, "never seen"))
    receipt = await person.say("go")
    turn = receipt["turn_id"]
    await person.follow(lambda f: f["type"] == "TEXT_MESSAGE_CONTENT")
    began = time.monotonic()
    assert (await person.ask("PUT", f"/api/turns/{turn}/cancellation")).status == 202
    frames = await person.ended(turn)
    assert time.monotonic() - began < 2
    assert frames[-1]["type"] == "RUN_FINISHED"
    assert frames[-1]["outcome"] == "stopped"
    assert frames[-1]["message"]["text"] == "the part "
    assert frames[-1]["message"]["state"] == "stopped"
    await until(lambda: meter.model_requests[0].outcome == "left")


async def test_next_turn_is_untouched_when_an_ended_one_is_cancelled(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(reply=s.text("first"))
    meter.then(reply=s.text("second"))
    conversation = ids.ulid()
    ended = (await person.say("one", conversation))["turn_id"]
    before = await person.ended(ended)
    assert (await person.ask("PUT", f"/api/turns/{ended}/cancellation")).status == 200
    assert (await person.answer_to("two", conversation))["text"] == "second"
    frames = await person.follow(lambda f: f["type"] == "RUN_FINISHED", after=before[-1]["seq"])
    assert kinds(frames, ended) == []


async def test_queued_turn_ends_at_once_when_it_is_cancelled(
    person: Person, meter: ScriptedMeter
) -> None:
    gate = s.Gate()
    meter.then(s.last_contains("one"), reply=s.text(gate, "1"))
    conversation = ids.ulid()
    first = (await person.say("one", conversation))["turn_id"]
    second = (await person.say("two", conversation))["turn_id"]
    await gate.reached()
    assert (await person.ask("PUT", f"/api/turns/{second}/cancellation")).status == 202
    frames = await person.ended(second)
    assert kinds(frames, second) == ["RUN_STARTED", "RUN_FINISHED"]
    gate.open()
    frames = await person.ended(first)
    assert len([k for k in kinds(frames, second) if k.startswith("RUN_")]) == 2


async def test_tool_is_left_and_its_call_closed_when_the_person_stops(
    person: Person, meter: ScriptedMeter
) -> None:
    gate = s.Gate()
    conversation = ids.ulid()
    meter.then(reply=s.calls("Noting. ", s.call("save_note", title="t", text="x")))
    meter.then(s.has_result("Saved"), reply=s.text(gate, "done"))
    turn = (await person.say("note x", conversation))["turn_id"]
    await gate.reached()
    await person.ask("PUT", f"/api/turns/{turn}/cancellation")
    message = (await person.ended(turn))[-1]["message"]
    assert message["text"] == "Noting. "
    assert message["tools"][0]["state"] == "done"
    meter.then(s.last_contains("go on"), s.has_result("Saved"), reply=s.text("fine"))
    assert (await person.answer_to("go on", conversation))["text"] == "fine"


async def test_conversation_is_gone_and_the_model_left_when_it_is_deleted_in_mid_answer(
    person: Person, meter: ScriptedMeter
) -> None:
    gate = s.Gate()
    meter.then(reply=s.text("secret ", gate, "rest"))
    receipt = await person.say("tell me")
    conversation = receipt["conversation_id"]
    await gate.reached()
    assert (await person.ask("DELETE", f"/api/conversations/{conversation}")).status == 204
    await until(lambda: meter.model_requests[0].outcome == "left")
    page = await person.ask("GET", f"/api/conversations/{conversation}/messages")
    assert page.status == 404
    frames = await person.follow(lambda f: f.get("name") == "conversation.deleted")
    assert [f["type"] for f in frames] == ["CUSTOM"]  # nothing that was said is left in the log
    assert (await person.ask("DELETE", f"/api/conversations/{conversation}")).status == 404


async def test_quota_refusal_ends_the_turn_with_when_it_resets(
    person: Person, meter: ScriptedMeter
) -> None:
    refusal = s.error(
        402,
        "no money",
        x_alcove_reason="quota_charge_month",
        x_alcove_resets_at="1767225600000",
        x_should_retry="false",
    )
    meter.then(reply=refusal)
    receipt = await person.say("hello")
    end = (await person.ended(receipt["turn_id"]))[-1]
    assert (end["type"], end["code"]) == ("RUN_ERROR", "quota_exhausted")
    assert end["details"]["reason"] == "quota_charge_month"
    assert end["details"]["resets_at"] == 1767225600000
    assert end["retryable"] is False
    assert end["message"]["error"]["code"] == "quota_exhausted"
    assert "no money" not in end["message_text"]


async def test_retry_is_a_new_turn_with_the_same_words_and_the_failed_try_is_not_told(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(reply=s.error(402, x_should_retry="false"))
    receipt = await person.say("what is up?")
    await person.ended(receipt["turn_id"])
    meter.then(s.last_contains("what is up?"), reply=s.text("not much"))
    client_id = ids.ulid()
    path = f"/api/turns/{receipt['turn_id']}/retries"
    answer = await person.ask("POST", path, json={"client_message_id": client_id})
    again = await person.ask("POST", path, json={"client_message_id": client_id})
    assert answer.status == again.status == 202
    assert answer.body["turn_id"] == again.body["turn_id"] != receipt["turn_id"]
    end = (await person.ended(answer.body["turn_id"]))[-1]
    assert end["message"]["text"] == "not much"
    assert meter.model_requests[-1].last_text.count("what is up?") == 1


async def test_retry_is_refused_when_the_turn_has_not_ended(
    person: Person, meter: ScriptedMeter
) -> None:
    gate = s.Gate()
    meter.then(reply=s.text(gate, "x"))
    turn = (await person.say("hello"))["turn_id"]
    path = f"/api/turns/{turn}/retries"
    answer = await person.ask("POST", path, json={"client_message_id": ids.ulid()})
    assert (answer.status, answer.body["error"]["details"]["reason"]) == (409, "turn_in_flight")
    gate.open()
    await person.ended(turn)


async def test_unanswered_words_are_told_with_the_next_message_when_a_turn_failed(
    person: Person, meter: ScriptedMeter
) -> None:
    conversation = ids.ulid()
    meter.then(reply=s.error(402, x_should_retry="false"))
    await person.ended((await person.say("my dog is Rex", conversation))["turn_id"])
    meter.then(s.last_contains("my dog is Rex\n\nwho is Rex?"), reply=s.text("your dog"))
    assert (await person.answer_to("who is Rex?", conversation))["text"] == "your dog"


async def test_stream_of_one_turn_has_one_end_when_it_is_cancelled_many_times(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.always(reply=s.text("x"))
    conversation = ids.ulid()
    turns = [(await person.say(f"m{n}", conversation))["turn_id"] for n in range(6)]
    await asyncio.gather(
        *(person.ask("PUT", f"/api/turns/{turn}/cancellation") for turn in turns for _ in range(3))
    )
    marker = (await person.say("last", conversation))["turn_id"]
    frames = await person.follow(is_end_of(marker))
    for turn in turns:
        ends = [f for f in frames if is_end_of(turn)(f)]
        assert len(ends) == 1
