"""The loop before a model that is away, breaks off, runs on or says nothing."""

import pytest

from infra.kit import ids
from tests import scripted as s
from tests.agent.meter import ScriptedMeter
from tests.agent.person import Person
from tests.agent.test_loop import ended, on_both_wires
from tests.waiting import until


@pytest.fixture
def wire() -> str:
    """The wire that the model speaks, unless a test asks for both."""
    return "openai"


@pytest.fixture(autouse=True)
def _wire(meter: ScriptedMeter, wire: str) -> None:
    meter.wire = wire


@on_both_wires
async def test_answer_is_whole_when_runes_are_cut_between_chunks(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(reply=s.text("👩‍👩‍👧 grüß ", "明天 🌍").byte_by_byte().with_crlf().with_comments())
    end, _ = await ended(person, "hi")
    assert end["message"]["text"] == "👩‍👩‍👧 grüß 明天 🌍"


@on_both_wires
async def test_model_is_asked_again_when_it_is_briefly_away(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(reply=s.error(529, retry_after="0"))
    meter.then(reply=s.text(s.StreamError()))
    meter.then(reply=s.text("here I am"))
    end, _ = await ended(person, "hello?")
    assert end["message"]["text"] == "here I am"


async def test_model_is_not_asked_again_when_the_meter_forbids_it(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(
        reply=s.error(
            429, retry_after="1", x_should_retry="false", x_alcove_reason="requests_minute"
        )
    )
    end, _ = await ended(person, "hello?")
    assert (end["code"], end["details"]["reason"], end["retryable"]) == (
        "rate_limited",
        "requests_minute",
        True,
    )


@pytest.mark.parametrize("status", [400, 401, 403])
async def test_model_is_asked_once_when_the_request_itself_is_wrong(
    person: Person, meter: ScriptedMeter, status: int
) -> None:
    meter.then(reply=s.error(status, "max_tokens is invalid"))
    end, _ = await ended(person, "hello?")
    assert end["type"] == "RUN_ERROR"


@on_both_wires
@pytest.mark.parametrize("broken", ["cut", "error"])
async def test_answer_never_begins_twice_when_it_breaks_in_the_middle(
    person: Person, meter: ScriptedMeter, broken: str, wire: str
) -> None:
    reply = s.text("the first half ", s.StreamError(), "lost")
    if broken == "cut":
        reply = s.text("the first half ", "x" * 4000).dropped_after(1200)
    meter.then(reply=reply)
    end, _ = await ended(person, "hello?")
    assert (end["type"], end["retryable"]) == ("RUN_ERROR", True)
    assert end["code"] in ("bad_gateway", "unavailable")
    assert end["message"]["text"].startswith("the first half ")
    assert end["message"]["state"] == "failed"


@on_both_wires
async def test_answer_is_complete_when_only_the_streams_last_event_is_missing(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(reply=s.text("all said").without_end())
    end, _ = await ended(person, "hello?")
    assert (end["outcome"], end["message"]["text"]) == ("complete", "all said")


@on_both_wires
async def test_empty_answer_is_asked_for_again_then_said_to_be_broken(
    person: Person, meter: ScriptedMeter
) -> None:
    for _ in range(3):
        meter.then(reply=s.text())
    end, _ = await ended(person, "hello?")
    assert (end["code"], end["details"]["reason"]) == ("bad_gateway", "empty_answer")


async def test_empty_last_answer_is_an_end_when_something_was_said_before(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(reply=s.calls("Saved it. ", s.call("save_note", title="a", text="b")))
    meter.then(reply=s.text())
    end, _ = await ended(person, "note b")
    assert (end["outcome"], end["message"]["text"]) == ("complete", "Saved it. ")


@on_both_wires
async def test_prompt_is_told_shorter_when_the_model_finds_it_too_long(
    person: Person, meter: ScriptedMeter
) -> None:
    conversation = ids.ulid()
    meter.context_tokens = 30_000
    for n in range(6):
        meter.then(reply=s.text(f"answer {n}"))
        await ended(person, f"exchange {n} " + "word " * 600, conversation)
    for _ in range(3):
        meter.then(reply=s.text("it fits").overflow_above(1500))
    end, _ = await ended(person, "and now?", conversation)
    assert end["message"]["text"] == "it fits"
    sizes = [r.input_words for r in meter.model_requests[6:]]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)
    assert len((await person.messages(conversation))["messages"]) == 14


async def test_person_is_told_when_no_model_is_connected(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.connected = False
    end, _ = await ended(person, "hello?")
    assert (end["code"], end["details"]["reason"]) == ("unavailable", "no_provider")
    meter.connected = True
    meter.then(reply=s.text("now"))
    end, _ = await ended(person, "hello?")
    assert end["message"]["text"] == "now"


async def test_model_that_is_the_default_now_is_asked(person: Person, meter: ScriptedMeter) -> None:
    for name in ("scripted/model-1", "scripted/model-2"):
        meter.model = name
        meter.then(reply=s.text("hello"))
        await ended(person, "hello?")
        assert meter.model_requests[-1].model == name


async def test_second_call_waits_when_the_plan_allows_one_at_a_time(
    person: Person, meter: ScriptedMeter
) -> None:
    gate = s.Gate()
    meter.then(s.last_contains("first"), reply=s.text("one", gate))
    first = await person.say("first")
    await gate.reached()
    refusal = s.error(
        429, retry_after="1", x_should_retry="false", x_alcove_reason="concurrent_calls"
    )
    meter.then(s.last_contains("second"), reply=refusal)
    meter.then(s.last_contains("second"), reply=s.text("two"))
    second = await person.say("second")
    await until(lambda: len(meter.model_requests) == 2)
    gate.open()
    assert (await person.ended(first["turn_id"]))[-1]["type"] == "RUN_FINISHED"
    assert (await person.ended(second["turn_id"]))[-1]["message"]["text"] == "two"


async def test_turn_waits_when_dead_calls_still_hold_their_places(
    person: Person, meter: ScriptedMeter
) -> None:
    refusal = s.error(
        429, retry_after="1", x_should_retry="false", x_alcove_reason="concurrent_calls"
    )
    for _ in range(20):
        meter.then(reply=refusal)
    meter.then(reply=s.text("there is room again"))
    end, _ = await ended(person, "hello?")
    assert end["type"] == "RUN_FINISHED"
    assert end["message"]["text"] == "there is room again"


async def test_person_is_told_when_no_place_comes_free(
    person: Person, meter: ScriptedMeter
) -> None:
    refusal = s.error(
        429, retry_after="1", x_should_retry="false", x_alcove_reason="concurrent_calls"
    )
    for _ in range(26):
        meter.then(reply=refusal)
    end, _ = await ended(person, "hello?")
    assert (end["code"], end["details"]["reason"]) == ("rate_limited", "concurrent_calls")
