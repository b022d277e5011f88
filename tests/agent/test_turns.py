"""Turns over the real socket: streamed, ordered, deduplicated, stopped; each with exactly one ending."""

from tests import scripted as s
from tests.agent.meter import ScriptedMeter
from tests.agent.person import Person, text_of


async def test_answer_is_streamed_and_kept_when_a_message_is_posted(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(s.last_contains("hello"), reply=s.text("Hi ", "there, ", "friend."))
    receipt = await person.say("hello")
    frames = await person.ended(receipt["turn_id"])
    assert text_of(frames, receipt["turn_id"]) == "Hi there, friend."
    assert frames[-1]["type"] == "RUN_FINISHED"
    page = await person.messages(receipt["conversation_id"])
    assert [(m["role"], m["text"], m["state"]) for m in page["messages"]] == [
        ("user", "hello", "complete"),
        ("assistant", "Hi there, friend.", "complete"),
    ]
