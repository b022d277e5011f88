"""What the meter says of an answer in its headers reaches the person."""

from tests import scripted as s
from tests.agent.meter import ScriptedMeter
from tests.agent.person import Person


async def test_clamp_is_told_in_the_chat_when_the_meter_announces_it(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(reply=s.text("short").stopping("length").with_headers(x_alcove_clamped_to="12"))
    receipt = await person.say("write a book")
    frames = await person.ended(receipt["turn_id"])
    notice = next(f for f in frames if f.get("name") == "notice")
    assert notice["kind"] == "clamped"
    assert "12 tokens" in notice["text"]
    assert frames[-1]["message"]["notices"] == [{"kind": "clamped", "text": notice["text"]}]


async def test_answer_names_the_model_that_gave_it_when_another_was_asked(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(reply=s.text("from the other").with_headers(x_alcove_model="second/other"))
    receipt = await person.say("hello")
    frames = await person.ended(receipt["turn_id"])
    assert frames[-1]["message"]["model"] == "second/other"
