"""/api/conversations/{id}/messages: reading a conversation, and saying something in it."""

from dataclasses import dataclass
from typing import Any

from agent import intake
from agent.api.conversations import checked_id
from agent.asgi import Request, Response
from agent.faults import Faults
from agent.store import conversations, events, messages
from agent.store.database import Database, Tx
from agent.turns import Turns
from infra.kit.errors import AlcoveError

TEXT_MAX_CHARS = 32_000


@dataclass(frozen=True, slots=True)
class Messages:
    """The handlers."""

    db: Database
    turns: Turns
    faults: Faults

    async def index(self, request: Request) -> Response:
        """GET: the conversation, a page of its messages and the log's position, as of one moment."""
        conversation_id = request.path_values["id"]
        before = request.query.get("before") or None
        limit = request.whole("limit", 50, 1, 200)

        def read(tx: Tx) -> dict[str, Any]:
            conversation = conversations.get(tx, conversation_id)
            shown, more = messages.page(tx, conversation_id, before, limit)
            return {
                "conversation": conversation, "messages": shown,
                "epoch": events.epoch(tx), "seq": events.last_seq(tx), "has_more": more,
            }  # fmt: skip

        return Response(body=await self.db.read(read))

    async def create(self, request: Request) -> Response:
        """POST: 202 once the message is on disk; the turn goes on whatever becomes of this request."""
        conversation_id = checked_id(request)
        body = await request.json()
        message = intake.Incoming(
            conversation_id=conversation_id,
            client_message_id=client_id(body),
            text=_text(body),
            channel=_word(body, "channel", "web"),
            source=_word(body, "source", "user"),
            request_id=request.request_id,
            traceparent=request.headers.get("traceparent"),
        )
        refuse_when_leaving(self.turns)
        receipt = await self.db.write(lambda tx: intake.accept(tx, message), durable=True)
        self.faults.reach("after_receive")
        self.turns.wake(conversation_id)
        return Response(202, receipt)


def client_id(body: dict[str, Any]) -> str:
    """The sender's own id of a message. Raises `invalid`."""
    found = body.get("client_message_id")
    legal = isinstance(found, str) and 0 < len(found) <= 64 and found.isascii()
    if not legal or not all(c.isalnum() or c in "-_" for c in str(found)):
        raise AlcoveError("invalid", "client_message_id: 1 to 64 letters, digits, - or _.")
    return str(found)


def refuse_when_leaving(turns: Turns) -> None:
    """Raises `unavailable` while the process ends: whoever sent the message keeps it."""
    if turns.leaving:
        raise AlcoveError("unavailable", "The assistant is restarting.", reason="agent_stopping")


def _text(body: dict[str, Any]) -> str:
    text = body.get("text")
    if not isinstance(text, str) or not text.strip():
        raise AlcoveError("invalid", "A message needs text.")
    if len(text) > TEXT_MAX_CHARS:
        raise AlcoveError("too_large", f"A message may have {TEXT_MAX_CHARS} characters.")
    return text.replace("\0", "")


def _word(body: dict[str, Any], name: str, default: str) -> str:
    found = body.get(name, default)
    if not isinstance(found, str) or not found.isidentifier() or len(found) > 32:
        raise AlcoveError("invalid", f"{name} must be one word.")
    return found
