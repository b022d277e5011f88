"""What happens in a turn, written to its rows and to the event log in one transaction.

Every function here takes the open transaction. `finish` is the only way to an ending, and compares
before it sets: whoever comes second (a cancellation, a restart) finds nothing left to end.
"""

from dataclasses import dataclass
from typing import Any, Literal

import orjson

from agent.store import conversations, events, messages, search
from agent.store.database import Tx
from agent.transcript import Asked, Ended, Notice, Started, Step, Text, Turn
from infra.kit import ids

Outcome = Literal["complete", "stopped", "failed", "interrupted"]
_UNANSWERED = {
    "stopped": "Stopped by the person before it ended; whether it had an effect is not known.",
    "failed": "The turn ended before this call did; whether it had an effect is not known.",
    "interrupted": "The assistant was restarted during this call; whether it had an effect is not known.",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ended. `code`, `text` and `details` tell the person why it did not complete."""

    outcome: Outcome
    reason: str
    code: str = ""
    text: str = ""
    retryable: bool = False
    details: dict[str, Any] | None = None


def begin(tx: Tx, turn: Turn) -> None:
    """queued → running."""
    tx.run("UPDATE turn SET state = 'running', started_at = ? WHERE id = ?", tx.now_at, turn.id)
    tx.run("UPDATE conversation SET last_turn_state = 'running' WHERE id = ?", turn.conversation_id)
    _open(tx, turn)


def _open(tx: Tx, turn: Turn) -> None:
    """The assistant's message exists from now on, and the log says RUN_STARTED; once a turn."""
    if turn.assistant_message_id:
        return
    turn.assistant_message_id = ids.ulid(tx.now_at)
    tx.run(
        "INSERT INTO message (position, id, conversation_id, turn_id, role, text, state, channel, source,"
        " created_at) SELECT ?, ?, conversation_id, turn_id, 'assistant', '', 'streaming', channel, source, ?"
        " FROM message WHERE id = ?",
        2 * turn.ordinal + 1, turn.assistant_message_id, tx.now_at, turn.user_message_id,
    )  # fmt: skip
    _tell(
        tx, turn, "RUN_STARTED",
        message=messages.get(tx, turn.user_message_id),
        assistant_message_id=turn.assistant_message_id,
    )  # fmt: skip


def record(tx: Tx, turn: Turn, step: Step) -> None:
    """Writes one step of the loop."""
    match step:
        case Text():
            _say(tx, turn, step.delta)
        case Started():
            _start_call(tx, turn, step)
        case Ended():
            _keep_whole(tx, turn, step)
            _end_call(tx, turn, step.call.id, step.call.result or "", failed=step.call.failed)
        case Notice():
            _note(tx, turn, step)
        case Asked():
            tx.run(
                "UPDATE message SET model = ? WHERE id = ?", step.model, turn.assistant_message_id
            )


def _say(tx: Tx, turn: Turn, delta: str) -> None:
    if turn.shown_chars == 0:
        _tell(tx, turn, "TEXT_MESSAGE_START", message_id=turn.assistant_message_id)
    tx.run("UPDATE message SET text = text || ? WHERE id = ?", delta, turn.assistant_message_id)
    _tell(
        tx, turn, "TEXT_MESSAGE_CONTENT",
        message_id=turn.assistant_message_id, delta=delta, offset=turn.shown_chars,
    )  # fmt: skip
    turn.shown_chars += len(delta)


def _start_call(tx: Tx, turn: Turn, step: Started) -> None:
    call = step.call
    tx.run(
        "INSERT INTO tool_call (id, turn_id, round, position, call_id, name, title, arguments, state,"
        " text_offset, started_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'running', ?, ?)",
        call.id, turn.id, step.round, step.position, call.call_id, call.name, step.title,
        orjson.dumps(call.arguments).decode(), turn.shown_chars, tx.now_at,
    )  # fmt: skip
    _tell(tx, turn, "TOOL_CALL_START", tool_call=messages.call(tx, call.id))


def _keep_whole(tx: Tx, turn: Turn, step: Ended) -> None:
    if step.whole is not None:
        tx.run(
            "INSERT OR REPLACE INTO artifact (id, turn_id, text) VALUES (?, ?, ?)",
            step.call.id, turn.id, step.whole,
        )  # fmt: skip


def _note(tx: Tx, turn: Turn, step: Notice) -> None:
    tx.run(
        "UPDATE message SET notices = json_insert(notices, '$[#]', json_object('kind', ?, 'text', ?))"
        " WHERE id = ?",
        step.kind, step.text, turn.assistant_message_id,
    )  # fmt: skip
    _tell(tx, turn, "CUSTOM", name="notice", kind=step.kind, text=step.text)


def finish(tx: Tx, turn: Turn, ending: Ending) -> bool:
    """Ends a turn, exactly once: False where it had ended already, and then nothing is written."""
    changed = tx.run(
        "UPDATE turn SET state = ?, stop_reason = ?, ended_at = ? WHERE id = ?"
        " AND state IN ('queued', 'running', 'waiting')",
        ending.outcome, ending.reason, tx.now_at, turn.id,
    )  # fmt: skip
    if changed.rowcount == 0:
        return False
    _open(tx, turn)
    for row in tx.all("SELECT id FROM tool_call WHERE turn_id = ? AND state = 'running'", turn.id):
        _end_call(tx, turn, row["id"], _UNANSWERED.get(ending.outcome, ""), failed=True)
    error = None
    if ending.outcome in ("failed", "interrupted"):
        error = {"code": ending.code, "message": ending.text, "details": ending.details or {}}
    tx.run(
        "UPDATE message SET state = ?, error = ? WHERE id = ?",
        ending.outcome, orjson.dumps(error).decode() if error else None, turn.assistant_message_id,
    )  # fmt: skip
    if turn.shown_chars:
        _tell(tx, turn, "TEXT_MESSAGE_END", message_id=turn.assistant_message_id)
    message = messages.get(tx, turn.assistant_message_id)
    if message["text"]:
        search.put(tx, "message", message["id"], message["text"], turn.conversation_id)
    seq = _tell_ending(tx, turn, ending, message)
    tx.run("UPDATE turn SET ended_seq = ? WHERE id = ?", seq, turn.id)
    conversations.touch(tx, turn.conversation_id, ending.outcome)
    events.prune(tx)
    return True


def _tell_ending(tx: Tx, turn: Turn, ending: Ending, message: dict[str, Any]) -> int:
    if ending.outcome in ("complete", "stopped"):
        return _tell(tx, turn, "RUN_FINISHED", outcome=ending.outcome, message=message)
    return _tell(
        tx, turn, "RUN_ERROR",
        code=ending.code, message_text=ending.text, retryable=ending.retryable,
        details=ending.details or {}, message=message,
    )  # fmt: skip


def _end_call(tx: Tx, turn: Turn, call_id: str, result: str, *, failed: bool) -> None:
    tx.run(
        "UPDATE tool_call SET state = ?, result = ?, ended_at = ? WHERE id = ?",
        "failed" if failed else "done", result, tx.now_at, call_id,
    )  # fmt: skip
    _tell(tx, turn, "TOOL_CALL_END", tool_call=messages.call(tx, call_id))


def _tell(tx: Tx, turn: Turn, type_: str, /, **fields: Any) -> int:
    return events.append(tx, type_, turn.conversation_id, turn.id, **fields)
