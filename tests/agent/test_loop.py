"""The loop before a scripted model: tools, their failures, circles, limits, and a model that misbehaves."""

import asyncio
from typing import Annotated

import pytest

from agent.loop import MAX_ROUNDS
from agent.tools.builtin import BUILTIN
from agent.tools.registry import RESULT_MAX_CHARS, Context, Tool, tool
from infra.kit import ids
from infra.kit.errors import AlcoveError
from tests import scripted as s
from tests.agent.meter import ScriptedMeter
from tests.agent.person import Frame, Person

on_both_wires = pytest.mark.parametrize("wire", ["openai", "anthropic"])

RUNS: list[str] = []


@tool("Polling", repeatable=True)
async def poll(context: Context, *, job: Annotated[str, "which job"]) -> str:
    """Asks how a job stands."""
    RUNS.append(job)
    return "no output"


@tool("Writing", repeatable=False)
async def write_file(context: Context, *, path: str, content: str) -> str:
    """Writes a file."""
    RUNS.append(path)
    return "written"


@tool("Breaking", repeatable=True)
async def breaks(context: Context) -> str:
    """Raises."""
    raise RuntimeError("boom")


@tool("Refusing", repeatable=True)
async def refuses(context: Context) -> str:
    """Raises a coded error."""
    raise AlcoveError("forbidden", "not allowed here")


@tool("Hanging", repeatable=True, timeout_s=0.05)
async def hangs(context: Context) -> str:
    """Never returns."""
    await asyncio.Event().wait()
    return "never"


@tool("Dumping", repeatable=True)
async def dumps(context: Context) -> str:
    """Returns two megabytes."""
    return "é" * 1_000_000 + "THE END"


@pytest.fixture
def tools() -> tuple[Tool, ...]:
    """The built-in tools and the ones above."""
    RUNS.clear()
    return (*BUILTIN, poll, write_file, breaks, refuses, hangs, dumps)


@pytest.fixture
def wire() -> str:
    """The wire that the model speaks, unless a test asks for both."""
    return "openai"


@pytest.fixture(autouse=True)
def _wire(meter: ScriptedMeter, wire: str) -> None:
    meter.wire = wire


async def ended(
    person: Person, text: str, conversation: str | None = None
) -> tuple[Frame, list[Frame]]:
    """The last frame of a turn, and all of its log."""
    turn = (await person.say(text, conversation))["turn_id"]
    frames = await person.ended(turn)
    return frames[-1], frames


@on_both_wires
async def test_tool_row_stands_between_the_words_when_the_model_calls_one(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(
        s.has_tool("current_time"),
        reply=s.calls("Let me look. ", s.call("current_time", zone="Asia/Tokyo")),
    )
    meter.then(s.has_result("Asia/Tokyo"), reply=s.text("It is late."))
    end, frames = await ended(person, "what time is it in Tokyo?")
    assert end["message"]["text"] == "Let me look. It is late."
    (row,) = end["message"]["tools"]
    assert (row["name"], row["state"], row["text_offset"]) == (
        "current_time",
        "done",
        len("Let me look. "),
    )
    assert row["arguments"] == {"zone": "Asia/Tokyo"}
    assert "Asia/Tokyo" in row["result_preview"]
    states = [f["tool_call"]["state"] for f in frames if f["type"].startswith("TOOL_CALL")]
    assert states == ["running", "done"]


@on_both_wires
async def test_model_answers_without_tools_when_its_rounds_are_used(
    person: Person, meter: ScriptedMeter
) -> None:
    for n in range(MAX_ROUNDS):
        meter.then(s.has_tools, reply=s.calls(s.call("current_time", zone=f"Etc/GMT+{n + 1}")))
    may_not_call = s.that(
        "may not call", lambda r: r.json["tool_choice"] in ("none", {"type": "none"})
    )
    meter.then(may_not_call, s.last_contains("Answer now"), reply=s.text("Eight zones."))
    end, _ = await ended(person, "all the times")
    assert end["outcome"] == "complete"
    assert end["message"]["text"] == "Eight zones."
    assert len(end["message"]["tools"]) == MAX_ROUNDS
    assert [n["kind"] for n in end["message"]["notices"]] == ["round_limit"]


async def test_turn_ends_with_words_when_the_model_calls_to_the_very_end(
    person: Person, meter: ScriptedMeter
) -> None:
    for n in range(MAX_ROUNDS + 1):
        meter.then(reply=s.calls(s.call("current_time", zone=f"Etc/GMT+{n + 1}")))
    end, _ = await ended(person, "never stop")
    assert end["outcome"] == "complete"
    assert "could not finish" in end["message"]["text"]
    assert len(end["message"]["tools"]) == MAX_ROUNDS


async def test_identical_calls_are_noted_then_refused_then_ended(
    person: Person, meter: ScriptedMeter
) -> None:
    same = s.calls(s.call("poll", job="X"))
    for _ in range(3):
        meter.then(s.has_tools, reply=same)
    meter.then(s.last_contains("three times"), reply=same)
    meter.then(s.last_contains("Refused"), reply=same)
    meter.then(s.last_contains("Answer now"), reply=s.text("It never answers."))
    end, _ = await ended(person, "poll X until it is done")
    assert RUNS == ["X"] * 3
    assert [t["state"] for t in end["message"]["tools"]] == ["done"] * 3 + ["failed"] * 2
    assert [n["kind"] for n in end["message"]["notices"]] == ["loop_guard"]
    assert end["message"]["text"] == "It never answers."


async def test_calls_are_ended_when_thirty_identical_ones_come_at_once(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(reply=s.calls(*(s.Call("poll", {"job": "X"}, id=f"c{n}") for n in range(30))))
    meter.then(s.last_contains("Answer now"), reply=s.text("Enough."))
    end, _ = await ended(person, "poll")
    assert RUNS == ["X"] * 3
    assert len(end["message"]["tools"]) == 30


async def test_same_effect_is_a_circle_when_only_the_path_differs(
    person: Person, meter: ScriptedMeter
) -> None:
    for letters in ("ab", "cd", "ef", "g", "h"):
        calls = [s.Call("write_file", {"path": x, "content": "C"}, id=f"c-{x}") for x in letters]
        meter.then(reply=s.calls(*calls))
    meter.then(s.last_contains("Answer now"), reply=s.text("Done."))
    end, _ = await ended(person, "write C everywhere")
    assert list("abcdef") == RUNS
    assert end["message"]["tools"][-2]["state"] == end["message"]["tools"][-1]["state"] == "failed"


async def test_unknown_tool_is_answered_with_the_closest_names_and_ends_at_three(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(reply=s.calls(s.call("note_list")))
    meter.then(s.last_contains("list_notes"), reply=s.calls(s.call("lists_note")))
    meter.then(s.last_contains("no tool named"), reply=s.calls(s.call("get_notes")))
    meter.then(s.last_contains("Answer now"), reply=s.text("I have no such tool."))
    end, _ = await ended(person, "list my notes")
    assert end["message"]["text"] == "I have no such tool."
    assert [t["state"] for t in end["message"]["tools"]] == ["failed"] * 3


@on_both_wires
async def test_every_call_has_its_own_result_when_neighbours_fail(
    person: Person, meter: ScriptedMeter
) -> None:
    """The scripted provider itself refuses a request in which a call has no result just behind it."""
    names = ("breaks", "refuses", "hangs", "current_time", "nothing_like_it")
    meter.then(reply=s.calls(*(s.Call(name, {}, id=f"id-{name}") for name in names)))
    meter.then(reply=s.text("ok"))
    end, _ = await ended(person, "everything at once")
    results = meter.model_requests[-1].tool_results
    assert list(results) == [f"id-{name}" for name in names]
    for name, words in (("breaks", "boom"), ("refuses", "not allowed"), ("hangs", "took longer")):
        assert words in results[f"id-{name}"]
    assert "UTC" in results["id-current_time"]
    states = {t["name"]: t["state"] for t in end["message"]["tools"]}
    assert states == dict.fromkeys(names, "failed") | {"current_time": "done"}


@on_both_wires
@pytest.mark.parametrize(
    "arguments", ["file=x", '{"zone": ', '["UTC"]', '{"zone": 3}', '{"place": "UTC"}']
)
async def test_model_is_told_what_is_wrong_when_its_arguments_are(
    person: Person, meter: ScriptedMeter, arguments: str
) -> None:
    meter.then(reply=s.calls(s.Call("current_time", arguments, id="bad")))
    meter.then(s.has_result("Error"), reply=s.calls(s.call("current_time", zone="UTC")))
    meter.then(s.has_result("UTC"), reply=s.text("mended"))
    end, _ = await ended(person, "time")
    assert end["message"]["text"] == "mended"


@on_both_wires
async def test_calls_stay_apart_when_they_share_an_index_or_an_id(
    person: Person, meter: ScriptedMeter, wire: str
) -> None:
    index = 0 if wire == "openai" else None
    zones = ("UTC", "Asia/Tokyo", "Europe/Lisbon")
    meter.then(
        reply=s.calls(
            *(
                s.Call("current_time", {"zone": z}, id=f"c{n}", index=index)
                for n, z in enumerate(zones)
            )
        )
    )
    meter.then(reply=s.text("three"))
    await ended(person, "times")
    results = meter.model_requests[-1].tool_results
    assert [next(z for z in zones if f", {z})" in text) for text in results.values()] == list(zones)
    meter.then(reply=s.calls(*(s.Call("current_time", {"zone": z}, id="same") for z in zones)))
    meter.then(reply=s.text("three"))
    await ended(person, "again")
    assert len(meter.model_requests[-1].tool_results) == 3


@on_both_wires
async def test_ids_stay_unique_when_a_provider_numbers_its_calls_anew_each_turn(
    person: Person, meter: ScriptedMeter
) -> None:
    conversation = ids.ulid()
    for n in range(3):
        meter.then(reply=s.calls(s.Call("current_time", {}, id="call_0")))
        meter.then(reply=s.text(f"answer {n}"))
        await ended(person, f"time {n}", conversation)
    assert len(meter.model_requests[-1].tool_results) == 3


async def test_long_result_is_shortened_with_a_handle_that_reads_the_rest(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(reply=s.calls(s.call("dumps")))

    def read_on(request: s.Request) -> s.Reply:
        (result,) = request.tool_results.values()
        assert len(result) <= RESULT_MAX_CHARS
        assert result.endswith("THE END")
        handle = result.split('handle="')[1].split('"')[0]
        return s.calls(s.call("read_result", handle=handle, start=999_990))

    meter.then(reply=read_on)
    meter.then(s.last_contains("ééééé"), s.last_contains("THE END\n"), reply=s.text("read"))
    end, _ = await ended(person, "dump")
    assert end["message"]["text"] == "read"
