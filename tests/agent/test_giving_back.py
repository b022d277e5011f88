"""What a person deletes is free on the disk, and not only in the file."""

import asyncio
import sqlite3
from pathlib import Path

from agent.app import App
from agent.store.database import Database, Tx
from infra.kit.clock import FakeClock
from tests import scripted as s
from tests.agent.conftest import Home
from tests.agent.meter import ScriptedMeter
from tests.agent.person import Person
from tests.waiting import until

MEGABYTE = "a letter of a long story " * 40_000


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.glob("agent.db*"))


def _fill(tx: Tx) -> None:
    for number in range(8):
        tx.run(
            "INSERT INTO note (id, title, text, created_at) VALUES (?, 'n', ?, 0)",
            str(number),
            MEGABYTE,
        )


def _empty(tx: Tx) -> None:
    tx.run("DELETE FROM note")


def _count(tx: Tx) -> int:
    row = tx.one("SELECT count(*) FROM note")
    assert row is not None
    return int(row[0])


def _lengthen(tx: Tx) -> None:
    tx.run("UPDATE message SET text = ?", MEGABYTE * 4)


async def test_file_shrinks_by_what_was_deleted_while_others_go_on(tmp_path: Path) -> None:
    db = Database(tmp_path / "agent.db", FakeClock())
    db.open()
    await db.write(_fill)
    full = _size(tmp_path)
    assert full > 8_000_000
    await db.write(_empty)
    db.give_back()
    db.give_back()  # once more beside it changes nothing
    assert {*await asyncio.gather(*(db.read(_count) for _ in range(50)))} == {0}
    await until(lambda: _size(tmp_path) < 500_000, what="the file's shrinking")
    await db.write(_fill)
    await db.write(_empty)
    db.give_back()
    await db.close()  # in the middle of it


async def test_file_of_before_is_left_as_it_is(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / "agent.db")
    old.execute("CREATE TABLE something (text)")
    old.close()
    db = Database(tmp_path / "agent.db", FakeClock())
    db.open()
    await db.write(_fill)
    await db.write(_empty)
    db.give_back()
    log = tmp_path / "agent.db-wal"
    await until(lambda: log.stat().st_size == 0, what="the emptied log, with which it ends")
    assert _size(tmp_path) > 8_000_000
    await db.write(_fill)
    assert await db.read(_count) == 8
    await db.close()


async def test_conversation_that_is_deleted_gives_its_room_back(
    app: App, person: Person, home: Home, meter: ScriptedMeter
) -> None:
    meter.then(reply=s.text("A long story."))
    receipt = await person.say("tell me")
    await person.ended(receipt["turn_id"])
    await app.db.write(_lengthen)
    assert _size(home.data) > 4_000_000
    conversation = receipt["conversation_id"]
    assert (await person.ask("DELETE", f"/api/conversations/{conversation}")).status == 204
    await until(lambda: _size(home.data) < 1_000_000, what="the file's shrinking")
