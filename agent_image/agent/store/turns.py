"""Turns: rows, the order of a lane, and a turn read back with all that it has done so far."""

import sqlite3

import orjson

from agent.store.database import Tx
from agent.transcript import Call, Exchange, Round, Turn
from infra.kit.errors import AlcoveError


def get(tx: Tx, turn_id: str) -> sqlite3.Row:
    """A turn's row. Raises `not_found`."""
    row = tx.one("SELECT * FROM turn WHERE id = ?", turn_id)
    if row is None:
        raise AlcoveError("not_found", "There is no such turn.")
    return row


def next_queued(tx: Tx, conversation_id: str) -> sqlite3.Row | None:
    """The turn that a conversation's lane takes next."""
    return tx.one(
        "SELECT * FROM turn WHERE conversation_id = ? AND state = 'queued' ORDER BY ordinal LIMIT 1",
        conversation_id,
    )


def with_state(tx: Tx, *states: str) -> list[sqlite3.Row]:
    """Every turn in one of the states, oldest first."""
    marks = ", ".join("?" * len(states))
    return tx.all(f"SELECT * FROM turn WHERE state IN ({marks}) ORDER BY ordinal", *states)  # noqa: S608


def load(tx: Tx, row: sqlite3.Row) -> Turn:
    """A turn with its message and what the model and the tools have done in it."""
    user = tx.one("SELECT * FROM message WHERE turn_id = ? AND role = 'user'", row["id"])
    assert user is not None
    mine = tx.one(
        "SELECT id, text FROM message WHERE turn_id = ? AND role = 'assistant'", row["id"]
    )
    said = mine["text"] if mine else ""
    return Turn(
        id=row["id"],
        conversation_id=row["conversation_id"],
        ordinal=row["ordinal"],
        user_text=user["text"],
        user_message_id=user["id"],
        assistant_message_id=mine["id"] if mine else "",
        request_id=row["request_id"],
        traceparent=row["traceparent"],
        source=user["source"],
        created_at=row["created_at"],
        rounds=_rounds(tx, row["id"], said),
        shown_chars=len(said),
    )


def exchanges(tx: Tx, conversation_id: str, before_ordinal: int, limit: int) -> list[Exchange]:
    """The last exchanges before a turn, oldest first; one that was tried again counts by its last try."""
    rows = tx.all(
        "SELECT t.id, u.text AS asked, coalesce(a.text, '') AS said FROM turn t"
        " JOIN message u ON u.turn_id = t.id AND u.role = 'user'"
        " LEFT JOIN message a ON a.turn_id = t.id AND a.role = 'assistant'"
        " WHERE t.conversation_id = ? AND t.ordinal < ?"
        " AND NOT EXISTS (SELECT 1 FROM turn r WHERE r.retry_of = t.id)"
        " ORDER BY t.ordinal DESC LIMIT ?",
        conversation_id, before_ordinal, limit,
    )  # fmt: skip
    return [Exchange(row["asked"], _rounds(tx, row["id"], row["said"])) for row in reversed(rows)]


def _rounds(tx: Tx, turn_id: str, said: str) -> list[Round]:
    """The rounds of a turn: each call knows its round and how much text came before it."""
    rounds: list[Round] = []
    begins: list[int] = []
    last = -1
    for row in tx.all(
        "SELECT * FROM tool_call WHERE turn_id = ? ORDER BY round, position", turn_id
    ):
        if row["round"] != last:
            last = row["round"]
            rounds.append(Round(""))
            begins.append(row["text_offset"])
        rounds[-1].calls.append(
            Call(
                id=row["id"],
                call_id=row["call_id"],
                name=row["name"],
                arguments=orjson.loads(row["arguments"]),
                result=row["result"],
                failed=row["state"] == "failed",
            )
        )
    starts = [0, *begins]
    for one, start, end in zip(rounds, starts, begins, strict=False):
        one.text = said[start:end]
    if rest := said[starts[-1] :]:
        rounds.append(Round(rest))
    return rounds
