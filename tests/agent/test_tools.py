"""Tools: schemas made from types, arguments checked, and the built-in ones against a clock that stands still."""

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from agent.store.database import Database
from agent.tools.builtin import BUILTIN
from agent.tools.registry import Context, Registry, tool
from agent.tools.schema import checked, schema_of
from agent.transcript import Call, Turn
from infra.kit.clock import FakeClock
from infra.kit.errors import AlcoveError

TURN = Turn("t", "c", 1, "words", "u", "a", "r", None, "user", 0)


async def sample(
    context: Context,
    *,
    name: Annotated[str, "whose"],
    count: int,
    ratio: float = 1.0,
    loud: bool = False,
    kind: Literal["a", "b"] = "a",
    note: str | None = None,
) -> str:
    """A sample."""
    return name


def test_schema_says_what_the_types_say() -> None:
    schema = schema_of(sample)
    assert schema["required"] == ["name", "count"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["name"] == {"type": "string", "description": "whose"}
    assert schema["properties"]["kind"] == {"type": "string", "enum": ["a", "b"]}
    assert schema["properties"]["note"] == {"type": "string"}


def test_tool_is_refused_when_built_when_a_type_has_no_place_in_a_schema() -> None:
    async def wrong(context: Context, *, when: dict[str, str]) -> str:
        return ""

    with pytest.raises(TypeError, match="a tool cannot take"):
        schema_of(wrong)


@pytest.mark.parametrize(
    ("given", "fit"),
    [
        ({"name": "x", "count": 3}, {"name": "x", "count": 3}),
        ({"name": 7, "count": "3"}, {"name": "7", "count": 3}),
        ({"name": "x", "count": 3.0, "ratio": "0.5"}, {"name": "x", "count": 3, "ratio": 0.5}),
        (
            {"name": "x", "count": 1, "loud": "true", "note": None},
            {"name": "x", "count": 1, "loud": True},
        ),
    ],
)
def test_arguments_are_read_where_nothing_is_lost(
    given: dict[str, Any], fit: dict[str, Any]
) -> None:
    assert checked(schema_of(sample), given) == fit


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": "x"}, "count is missing"),
        ({"name": "x", "count": 1.5}, "count must be of type integer"),
        ({"name": "x", "count": True}, "count must be of type integer"),
        ({"name": "x", "count": "many"}, "count must be of type integer"),
        ({"name": ["x"], "count": 1}, "name must be of type string"),
        ({"name": "x", "count": 1, "kind": "c"}, "kind must be one of a, b"),
        ({"name": "x", "count": 1, "ratio": "1e999"}, "ratio must be of type number"),
        ({"name": "x", "count": 1, "colour": "red"}, "unknown argument colour; known: name, count"),
    ],
)
def test_arguments_are_refused_in_words_that_help(given: dict[str, Any], words: str) -> None:
    with pytest.raises(AlcoveError, match=words):
        checked(schema_of(sample), given)


@pytest.fixture
def clock() -> FakeClock:
    """Friday, 29 March 2024, 23:30 UTC: two days before Lisbon's clocks change."""
    return FakeClock(1_711_755_000_000)


async def run(registry: Registry, name: str, **arguments: Any) -> Call:
    call, _ = await registry.run(Call("call-1", "call-1", name, arguments), TURN)
    return call


@pytest.mark.parametrize(
    ("zone", "words"),
    [
        ("UTC", "Friday, 29 March 2024, 23:30:00 (UTC+0000, UTC)"),
        ("America/Vancouver", "Friday, 29 March 2024, 16:30:00 (UTC-0700, America/Vancouver)"),
        ("Asia/Kolkata", "Saturday, 30 March 2024, 05:00:00 (UTC+0530, Asia/Kolkata)"),
        ("Lisbon time", "not an IANA time zone"),
        ("../../etc/passwd", "not an IANA time zone"),
    ],
)
async def test_time_is_told_in_the_zone_that_is_asked_for(
    tmp_path: Path, clock: FakeClock, zone: str, words: str
) -> None:
    registry = Registry(BUILTIN, Database(tmp_path / "agent.db", clock), clock)
    call = await run(registry, "current_time", zone=zone)
    assert words in (call.result or "")
    assert call.failed == ("not an" in words)


async def test_note_is_one_when_its_call_runs_twice(tmp_path: Path, clock: FakeClock) -> None:
    db = Database(tmp_path / "agent.db", clock)
    db.open()
    registry = Registry(BUILTIN, db, clock)
    for _ in range(2):
        await run(registry, "save_note", title="Milk", text="Buy oat milk")
    listed = await run(registry, "list_notes")
    assert listed.result == "[call-1] 2024-03-29 Milk\nBuy oat milk"
    assert (await run(registry, "list_notes", query="milk")).result == listed.result
    assert (await run(registry, "list_notes", query="bread")).result == "No notes."
    assert (await run(registry, "save_note", title="x", text=" ")).failed
    await db.close()


def test_tools_are_told_in_one_order_with_words_for_the_model(
    tmp_path: Path, clock: FakeClock
) -> None:
    db = Database(tmp_path / "agent.db", clock)
    specs = Registry(reversed(BUILTIN), db, clock).specs()
    assert [spec.name for spec in specs] == sorted(t.name for t in BUILTIN)
    assert all(len(spec.description) > 20 for spec in specs)


def test_tool_carries_its_functions_words() -> None:
    made = tool("Sampling", repeatable=False, timeout_s=3)(sample)
    assert (made.name, made.title, made.description, made.repeatable) == (
        "sample",
        "Sampling",
        "A sample.",
        False,
    )
