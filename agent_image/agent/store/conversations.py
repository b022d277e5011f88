"""Conversations: their rows, their order in the list, and what goes with them when they are deleted."""

import sqlite3
from typing import Any

from agent.store import events, search
from agent.store.database import Tx
from infra.kit.errors import AlcoveError

View = dict[str, Any]


def view(row: sqlite3.Row) -> View:
    """A conversation as the API shows it."""
    return {
        "id": row["id"],
        "title": row["title"],
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
        "last_turn_state": row["last_turn_state"],
    }


def get(tx: Tx, conversation_id: str) -> View:
    """One conversation. Raises `not_found`."""
    row = tx.one("SELECT * FROM conversation WHERE id = ?", conversation_id)
    if row is None:
        raise AlcoveError("not_found", "There is no such conversation.")
    return view(row)


def put(tx: Tx, conversation_id: str, title: str | None) -> bool:
    """Makes a conversation or gives it a title; whether it was made."""
    made = (
        tx.run(
            "INSERT OR IGNORE INTO conversation (id, title, created_at, updated_at) VALUES (?, '', ?, ?)",
            conversation_id, tx.now_at, tx.now_at,
        ).rowcount
        == 1
    )  # fmt: skip
    if title is not None:
        tx.run("UPDATE conversation SET title = ? WHERE id = ?", title, conversation_id)
        search.put(tx, "title", conversation_id, title, conversation_id)
    return made


def touch(tx: Tx, conversation_id: str, turn_state: str) -> None:
    """Moves a conversation to the top of the list, with the state of its last turn, and says so."""
    tx.run(
        "UPDATE conversation SET updated_at = ?, last_turn_state = ? WHERE id = ?",
        tx.now_at, turn_state, conversation_id,
    )  # fmt: skip
    announce(tx, conversation_id)


def announce(tx: Tx, conversation_id: str) -> None:
    """Appends `conversation.updated`."""
    events.append(
        tx, "CUSTOM", conversation_id, None,
        name="conversation.updated", conversation=get(tx, conversation_id),
    )  # fmt: skip


def delete(tx: Tx, conversation_id: str) -> bool:
    """Deletes a conversation with its turns, messages, events and words; whether there was one."""
    if tx.run("DELETE FROM conversation WHERE id = ?", conversation_id).rowcount == 0:
        return False
    search.drop_conversation(tx, conversation_id)
    tx.run("DELETE FROM event WHERE conversation_id = ?", conversation_id)
    events.append(tx, "CUSTOM", conversation_id, None, name="conversation.deleted")
    return True


def page(
    tx: Tx, before: tuple[int, str] | None, limit: int, q: str
) -> tuple[list[View], str | None]:
    """One page, newest first, and the cursor of the next one; `q` asks for words in titles and texts."""
    where, values = ["1"], list[object]()
    if before is not None:
        where.append("(updated_at, id) < (?, ?)")
        values.extend(before)
    if q.strip():
        condition, wanted = _holds(q)
        where.append(condition)
        values.extend(wanted)
    rows = tx.all(
        f"SELECT * FROM conversation WHERE {' AND '.join(where)}"  # noqa: S608 (fixed parts only)
        " ORDER BY updated_at DESC, id DESC LIMIT ?",
        *values, limit + 1,
    )  # fmt: skip
    shown = [view(row) for row in rows[:limit]]
    more = len(rows) > limit
    return shown, f"{shown[-1]['updated_at']}.{shown[-1]['id']}" if more else None


def _holds(q: str) -> tuple[str, list[object]]:
    """The condition for `q`: by the index, or letter by letter where `q` has no word at all (`+++`)."""
    expression = search.match_all(q)
    if expression is not None:
        return (
            "id IN (SELECT e.conversation_id FROM search JOIN search_entry e ON e.id = search.rowid"
            " WHERE search MATCH ? AND e.kind IN ('message', 'title'))",
            [expression],
        )
    escaped = q.strip().replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    like = f"%{escaped}%"
    return (
        r"(title LIKE ? ESCAPE '\' OR id IN"
        r" (SELECT conversation_id FROM message WHERE text LIKE ? ESCAPE '\'))",
        [like, like],
    )
