"""Notes that the assistant keeps for the person."""

import sqlite3
from dataclasses import dataclass

from agent.store import search
from agent.store.database import Tx
from agent.text import one_line


@dataclass(frozen=True, slots=True)
class Note:
    """One note."""

    id: str
    title: str
    text: str
    created_at: int


def _note(row: sqlite3.Row) -> Note:
    return Note(row["id"], row["title"], row["text"], row["created_at"])


def put(tx: Tx, note_id: str, title: str, text: str) -> Note:
    """Keeps a note under the id of the call that saved it, so that the same call again saves one note."""
    tx.run(
        "INSERT OR IGNORE INTO note (id, title, text, created_at) VALUES (?, ?, ?, ?)",
        note_id, title or one_line(text, 60), text, tx.now_at,
    )  # fmt: skip
    row = tx.one("SELECT * FROM note WHERE id = ?", note_id)
    assert row is not None
    search.put(tx, "note", note_id, f"{row['title']}\n{row['text']}")
    return _note(row)


def find(tx: Tx, query: str, limit: int) -> list[Note]:
    """Notes with a word of `query`, best first; for an empty query the newest."""
    if not query.strip():
        rows = tx.all("SELECT * FROM note ORDER BY created_at DESC, id DESC LIMIT ?", limit)
        return [_note(row) for row in rows]
    hits = search.find(tx, "note", search.match_any(search.words(query)), limit)
    found = [tx.one("SELECT * FROM note WHERE id = ?", hit.ref) for hit in hits]
    return [_note(row) for row in found if row is not None]
