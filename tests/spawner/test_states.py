"""The table of transitions: nothing else is possible, and of two that move one row, one wins."""

from collections.abc import Awaitable, Callable

import pytest

from infra.kit.db import Database, Transaction
from infra.kit.migrate import drift
from spawner import states, wire
from spawner.instances import Row, obtain
from spawner.journal import Journal
from spawner.models import metadata
from tests.databases import to_head
from tests.spawner.house import tenant

Move = Callable[[Transaction, Row], Awaitable[Row]]
MOVES: dict[wire.State, Move] = {
    "creating": lambda tx, row: states.to_creating(tx, row, runtime="process", timeout_s=60),
    "starting": lambda tx, row: states.to_starting(tx, row, timeout_s=60),
    "ready": lambda tx, row: states.to_ready(tx, row, url="unix:///x"),
    "stopping": lambda tx, row: states.to_stopping(tx, row, timeout_s=30),
    "stopped": lambda tx, row: states.to_stopped(tx, row),
    "failed": lambda tx, row: states.to_failed(tx, row, wire.Problem(code="c", message="m")),
}
WAYS: dict[wire.State, list[wire.State]] = {
    "absent": [],
    "creating": ["creating"],
    "starting": ["creating", "starting"],
    "ready": ["creating", "starting", "ready"],
    "stopping": ["creating", "stopping"],
    "stopped": ["creating", "stopping", "stopped"],
    "failed": ["creating", "failed"],
}


@pytest.fixture
async def migrated(db: Database) -> Database:
    await to_head(db, "spawner")
    return db


async def brought_to(db: Database, state: wire.State) -> Row:
    async with db.transaction() as tx:
        row = await obtain(tx, tenant())
        for step in WAYS[state]:
            row = await MOVES[step](tx, row)
    return row


async def test_migrations_tell_the_same_as_the_models(migrated: Database) -> None:
    assert await drift(migrated, metadata) == []


@pytest.mark.parametrize("start", WAYS)
async def test_only_legal_transitions_are_possible(migrated: Database, start: wire.State) -> None:
    for target, move in MOVES.items():
        row = await brought_to(migrated, start)
        if target in states.LEGAL[start]:
            async with migrated.transaction() as tx:
                assert (await move(tx, row)).state == target
        else:
            with pytest.raises(AssertionError, match="no transition"):
                async with migrated.transaction() as tx:
                    await move(tx, row)


async def test_second_mover_is_refused_when_two_decide_upon_the_same_row(
    migrated: Database,
) -> None:
    row = await brought_to(migrated, "ready")
    async with migrated.transaction() as tx:
        await states.to_stopping(tx, row, timeout_s=30)
    with pytest.raises(states.Moved):
        async with migrated.transaction() as tx:
            await states.to_failed(tx, row, wire.Problem(code="c", message="m"))


async def test_transient_states_have_a_deadline_and_others_none(migrated: Database) -> None:
    for state in WAYS:
        row = await brought_to(migrated, state)
        assert (row.deadline_at is not None) == (state in ("creating", "starting", "stopping"))


async def test_events_number_without_holes_when_an_instance_moves(migrated: Database) -> None:
    row = await brought_to(migrated, "stopped")
    events = await Journal(migrated).after(row.tenant, 0)
    assert [event.seq for event in events] == [1, 2, 3]
    assert [event.state for event in events] == ["creating", "stopping", "stopped"]


async def test_oldest_events_are_forgotten_when_there_are_too_many(migrated: Database) -> None:
    row = await brought_to(migrated, "stopped")
    for _ in range(80):
        async with migrated.transaction() as tx:
            for step in WAYS["stopped"]:
                row = await MOVES[step](tx, row)
    events = await Journal(migrated).after(row.tenant, 0)
    assert events[-1].seq == 243
    assert [event.seq for event in events] == list(range(events[0].seq, 244))
    assert 200 <= len(events) <= 203


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(1, 0), (2, 2), (3, 4), (4, 8), (8, 128), (9, 256), (10, 300), (99, 300)],
)
def test_back_off_doubles_up_to_five_minutes(failures: int, seconds: float) -> None:
    assert states.back_off_s(failures) == seconds
