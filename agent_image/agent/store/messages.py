"""Messages and their tool calls, as rows and as the API shows them."""

import sqlite3
from typing import Any

import orjson

from agent.store.database import Tx
from agent.text import one_line
from infra.kit.errors import AlcoveError

View = dict[str, Any]
_PREVIEW_CHARS = 240


def call_view(row: sqlite3.Row) -> View:
    """A ToolCall of docs/contracts.md."""
    return {
        "id": row["id"],
        "name": row["name"],
        "title": row["title"],
        "arguments": orjson.loads(row["arguments"]),
        "state": row["state"],
        "result_preview": one_line(row["result"], _PREVIEW_CHARS) if row["result"] else None,
        "started_at": row["started_at"],
        "ended_at": row["ended_at"],
        "text_offset": row["text_offset"],
    }


def call(tx: Tx, call_id: str) -> View:
    """The ToolCall with our id `call_id`."""
    row = tx.one("SELECT * FROM tool_call WHERE id = ?", call_id)
    assert row is not None
    return call_view(row)


def view(tx: Tx, row: sqlite3.Row) -> View:
    """A Message of docs/contracts.md."""
    calls: list[sqlite3.Row] = []
    if row["role"] == "assistant":
        calls = tx.all(
            "SELECT * FROM tool_call WHERE turn_id = ? ORDER BY round, position", row["turn_id"]
        )
    shown: View = {
        "id": row["id"],
        "conversation_id": row["conversation_id"],
        "turn_id": row["turn_id"],
        "role": row["role"],
        "text": row["text"],
        "state": row["state"],
        "error": orjson.loads(row["error"]) if row["error"] else None,
        "tools": [call_view(one) for one in calls],
        "created_at": row["created_at"],
        "notices": orjson.loads(row["notices"]),
    }
    for name in ("client_message_id", "model"):
        if row[name]:
            shown[name] = row[name]
    return shown


def get(tx: Tx, message_id: str) -> View:
    """One message that must exist."""
    row = tx.one("SELECT * FROM message WHERE id = ?", message_id)
    assert row is not None
    return view(tx, row)


def page(tx: Tx, conversation_id: str, before: str | None, limit: int) -> tuple[list[View], bool]:
    """The newest messages before the message `before`, oldest first, and whether there are older ones.

    Raises `not_found` when `before` is not a message of this conversation.
    """
    position = 1 << 62
    if before is not None:
        row = tx.one(
            "SELECT position FROM message WHERE id = ? AND conversation_id = ?",
            before,
            conversation_id,
        )
        if row is None:
            raise AlcoveError("not_found", "There is no such message in this conversation.")
        position = row["position"]
    rows = tx.all(
        "SELECT * FROM message WHERE conversation_id = ? AND position < ? ORDER BY position DESC LIMIT ?",
        conversation_id, position, limit + 1,
    )  # fmt: skip
    return [view(tx, row) for row in reversed(rows[:limit])], len(rows) > limit
