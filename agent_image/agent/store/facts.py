"""Facts about the person. Nothing is overwritten: a fact that another contradicts ends and names its heir."""

import sqlite3
from dataclasses import dataclass

from agent.store import search
from agent.store.database import Tx
from infra.kit import ids

_OPPOSITE = {"likes": "dislikes", "dislikes": "likes"}
_MANY = frozenset({"likes", "dislikes", "allergic", "note"})


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that the person said of themselves. `standing`: worth knowing in every conversation."""

    relation: str
    object: str
    text: str
    standing: bool = False


@dataclass(frozen=True, slots=True)
class Fact:
    """A claim that is kept."""

    id: str
    relation: str
    text: str
    created_at: int
    source_conversation_id: str | None = None


def _fact(row: sqlite3.Row) -> Fact:
    return Fact(
        row["id"], row["relation"], row["text"], row["created_at"], row["source_conversation_id"]
    )


def put(
    tx: Tx, claim: Claim, asserted_by: str, conversation_id: str | None, message_id: str | None
) -> Fact:
    """Keeps a claim; the same claim again is the same fact.

    A relation that can hold only once (a name, a home) ends the older fact, and so does an opposite
    one about the same thing; another subject's facts are never touched.
    """
    folded = " ".join(claim.object.casefold().split())
    known = tx.one(
        "SELECT * FROM fact WHERE relation = ? AND object = ? AND valid_to IS NULL",
        claim.relation,
        folded,
    )
    if known is not None:
        return _fact(known)
    fact_id = ids.ulid(tx.now_at)
    for row in _contradicted(tx, claim.relation, folded):
        tx.run(
            "UPDATE fact SET valid_to = ?, superseded_by = ? WHERE id = ?",
            tx.now_at,
            fact_id,
            row["id"],
        )
        search.drop(tx, "fact", row["id"])
    tx.run(
        "INSERT INTO fact (id, relation, object, text, standing, asserted_by, source_conversation_id,"
        " source_message_id, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        fact_id, claim.relation, folded, claim.text, claim.standing, asserted_by,
        conversation_id, message_id, tx.now_at,
    )  # fmt: skip
    search.put(tx, "fact", fact_id, claim.text)
    return Fact(fact_id, claim.relation, claim.text, tx.now_at, conversation_id)


def _contradicted(tx: Tx, relation: str, folded: str) -> list[sqlite3.Row]:
    if relation in _MANY:
        return tx.all(
            "SELECT id FROM fact WHERE relation = ? AND object = ? AND valid_to IS NULL",
            _OPPOSITE.get(relation, ""), folded,
        )  # fmt: skip
    return tx.all("SELECT id FROM fact WHERE relation = ? AND valid_to IS NULL", relation)


def newest(tx: Tx, limit: int, *, standing: bool = False) -> list[Fact]:
    """Current facts, newest first; `standing` ones only, if asked."""
    rows = tx.all(
        "SELECT * FROM fact WHERE valid_to IS NULL AND standing >= ? ORDER BY created_at DESC, id DESC LIMIT ?",
        int(standing), limit,
    )  # fmt: skip
    return [_fact(row) for row in rows]


def find(tx: Tx, query: str, limit: int) -> list[Fact]:
    """Current facts that share a telling word with `query`, best first; without one, the newest."""
    if not query.strip():
        return newest(tx, limit)
    wanted = search.content_words(query) or search.words(query)
    hits = search.find(tx, "fact", search.match_any(wanted), limit)
    rows = [tx.one("SELECT * FROM fact WHERE id = ?", hit.ref) for hit in hits]
    return [_fact(row) for row in rows if row is not None]


def delete(tx: Tx, fact_id: str) -> Fact | None:
    """Forgets a fact for good, with those that it had replaced; None where there is none."""
    row = tx.one("SELECT * FROM fact WHERE id = ?", fact_id)
    if row is None:
        return None
    search.drop(tx, "fact", fact_id)
    tx.run("DELETE FROM fact WHERE id = ? OR superseded_by = ?", fact_id, fact_id)
    return _fact(row)
