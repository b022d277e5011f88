"""A person's message on its way in: stored once, whatever is sent again, and a turn queued for it."""

from dataclasses import dataclass
from typing import Any

from agent import memory
from agent.store import conversations, search, turns
from agent.store.database import Tx
from agent.text import title_of
from infra.kit import ids
from infra.kit.errors import AlcoveError


@dataclass(frozen=True, slots=True)
class Incoming:
    """What was posted. `client_message_id` is the sender's: the same one again is the same message."""

    conversation_id: str
    client_message_id: str
    text: str
    channel: str
    source: str
    request_id: str
    traceparent: str | None
    retry_of: str | None = None


def accept(tx: Tx, message: Incoming) -> dict[str, Any]:
    """Stores a message, queues its turn and answers what the API answers with 202.

    What the person says about themselves is kept in the same transaction. Raises `conflict` for a
    known client id with another text or place.
    """
    known = tx.one(
        "SELECT m.*, t.state AS turn_state, t.retry_of FROM message m JOIN turn t ON t.id = m.turn_id"
        " WHERE m.client_message_id = ?",
        message.client_message_id,
    )  # fmt: skip
    if known is not None:
        same = (known["conversation_id"], known["text"], known["retry_of"])
        if same != (message.conversation_id, message.text, message.retry_of):
            raise AlcoveError("conflict", "This message id was used for another message.")
        return _receipt(known["turn_id"], known["id"], message.conversation_id, known["turn_state"])
    _open_conversation(tx, message)
    turn_id, message_id = ids.ulid(tx.now_at), ids.ulid(tx.now_at)
    ordinal = tx.run(
        "INSERT INTO turn (id, conversation_id, state, retry_of, request_id, traceparent, created_at)"
        " VALUES (?, ?, 'queued', ?, ?, ?, ?)",
        turn_id, message.conversation_id, message.retry_of, message.request_id, message.traceparent, tx.now_at,
    ).lastrowid  # fmt: skip
    assert ordinal is not None
    tx.run(
        "INSERT INTO message (position, id, conversation_id, turn_id, role, text, state, client_message_id,"
        " channel, source, created_at) VALUES (?, ?, ?, ?, 'user', ?, 'complete', ?, ?, ?, ?)",
        2 * ordinal, message_id, message.conversation_id, turn_id, message.text,
        message.client_message_id, message.channel, message.source, tx.now_at,
    )  # fmt: skip
    search.put(tx, "message", message_id, message.text, message.conversation_id)
    memory.learn(tx, message.text, message.conversation_id, message_id)
    conversations.touch(tx, message.conversation_id, "queued")
    return _receipt(turn_id, message_id, message.conversation_id, "queued")


def retry(
    tx: Tx, turn_id: str, client_message_id: str, request_id: str, traceparent: str | None
) -> dict[str, Any]:
    """A new turn with an ended turn's message. Raises `not_found`, and `conflict` while it has not ended."""
    row = turns.get(tx, turn_id)
    if row["ended_at"] is None:
        raise AlcoveError("conflict", "This turn has not ended yet.", reason="turn_in_flight")
    asked = tx.one("SELECT * FROM message WHERE turn_id = ? AND role = 'user'", turn_id)
    assert asked is not None
    again = Incoming(
        conversation_id=row["conversation_id"],
        client_message_id=client_message_id,
        text=asked["text"],
        channel=asked["channel"],
        source=asked["source"],
        request_id=request_id,
        traceparent=traceparent,
        retry_of=turn_id,
    )
    return accept(tx, again)


def _open_conversation(tx: Tx, message: Incoming) -> None:
    """Makes the conversation if there is none, and names one without a title after its first message."""
    conversations.put(tx, message.conversation_id, None)
    if not conversations.get(tx, message.conversation_id)["title"]:
        conversations.put(tx, message.conversation_id, title_of(message.text))


def _receipt(turn_id: str, message_id: str, conversation_id: str, state: str) -> dict[str, Any]:
    return {
        "turn_id": turn_id, "message_id": message_id, "conversation_id": conversation_id, "state": state,
    }  # fmt: skip
