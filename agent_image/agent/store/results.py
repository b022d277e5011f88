"""Long results of tools, kept whole, read by piece."""

from dataclasses import dataclass

from agent.store.database import Tx
from infra.kit.errors import AlcoveError


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters `start` to `end` of a text of `total`."""

    text: str
    start: int
    end: int
    total: int


def piece(tx: Tx, handle: str, conversation_id: str, start: int, limit: int) -> Piece:
    """A piece of a result of this conversation. Raises `not_found` for any other handle."""
    row = tx.one(
        "SELECT a.text FROM artifact a JOIN turn t ON t.id = a.turn_id"
        " WHERE a.id = ? AND t.conversation_id = ?",
        handle, conversation_id,
    )  # fmt: skip
    if row is None:
        raise AlcoveError("not_found", f"there is no long result with the handle {handle[:40]!r}")
    text = row["text"]
    start = min(start, len(text))
    end = min(start + limit, len(text))
    return Piece(text[start:end], start, end, len(text))
