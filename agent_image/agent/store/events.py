"""The numbered log of everything that a browser is told. A row is committed before anybody sees it."""

from typing import Any

import orjson

from agent.store.database import Tx

KEEP = 20_000


def append(tx: Tx, type_: str, conversation_id: str, turn_id: str | None, /, **fields: Any) -> int:
    """Appends one event of docs/contracts.md and answers its number.

    Numbers never come twice, whatever is deleted. `seq` itself is added on the way out (`frame_data`).
    """
    body = {
        "type": type_, "at": tx.now_at, "conversation_id": conversation_id, "turn_id": turn_id, **fields,
    }  # fmt: skip
    seq = tx.run(
        "INSERT INTO event (conversation_id, body) VALUES (?, ?)",
        conversation_id, orjson.dumps(body).decode(),
    ).lastrowid  # fmt: skip
    assert seq is not None
    tx.last_seq = seq
    return seq


def frame_data(seq: int, body: str) -> str:
    """A stored event as the JSON of its frame."""
    return f'{{"seq":{seq},{body[1:]}'


def last_seq(tx: Tx) -> int:
    """The newest number ever given, 0 before the first."""
    row = tx.one("SELECT seq FROM sqlite_sequence WHERE name = 'event'")
    return int(row["seq"]) if row else 0


def first_seq(tx: Tx) -> int:
    """The oldest number from which a replay has no hole."""
    row = tx.one("SELECT value FROM meta WHERE key = 'log_from'")
    return int(row["value"]) if row else 1


def epoch(tx: Tx) -> str:
    """The random name of this log; numbers of another epoch mean nothing here."""
    row = tx.one("SELECT value FROM meta WHERE key = 'epoch'")
    assert row is not None
    return str(row["value"])


def after(tx: Tx, seq: int, limit: int) -> list[tuple[int, str]]:
    """The next events behind `seq`, in order: number and frame data."""
    rows = tx.all("SELECT seq, body FROM event WHERE seq > ? ORDER BY seq LIMIT ?", seq, limit)
    return [(row["seq"], frame_data(row["seq"], row["body"])) for row in rows]


def prune(tx: Tx) -> None:
    """Forgets all but the newest `KEEP` events; the messages keep what they said."""
    oldest = last_seq(tx) - KEEP
    if oldest > first_seq(tx):
        tx.run("DELETE FROM event WHERE seq < ?", oldest)
        tx.run("INSERT OR REPLACE INTO meta (key, value) VALUES ('log_from', ?)", str(oldest))


def seen(tx: Tx, seq: int) -> None:
    """Notes that a subscriber has been sent the end of a turn, so that it is not unread."""
    tx.run(
        "INSERT INTO meta (key, value) VALUES ('seen_seq', ?) ON CONFLICT (key) DO UPDATE SET"
        " value = excluded.value WHERE CAST(excluded.value AS INTEGER) > CAST(value AS INTEGER)",
        str(seq),
    )


def unread(tx: Tx) -> int:
    """How many turns ended without any subscriber having been sent their end."""
    row = tx.one(
        "SELECT count(*) AS n FROM turn WHERE ended_seq >"
        " coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'seen_seq'), 0)"
    )
    return int(row["n"]) if row else 0
