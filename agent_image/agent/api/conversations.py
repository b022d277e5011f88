"""/api/conversations: the list, making and naming, deleting."""

from dataclasses import dataclass

from agent.asgi import Request, Response
from agent.store import conversations
from agent.store.database import Database, Tx
from agent.turns import Turns
from infra.kit import ids
from infra.kit.errors import AlcoveError

_TITLE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Conversations:
    """The handlers."""

    db: Database
    turns: Turns

    async def index(self, request: Request) -> Response:
        """GET: one page, newest first."""
        before = _cursor(request.query.get("before", ""))
        limit = request.whole("limit", 50, 1, 100)
        q = request.query.get("q", "")[:200]
        shown, following = await self.db.read(lambda tx: conversations.page(tx, before, limit, q))
        return Response(body={"conversations": shown, "next": following})

    async def put(self, request: Request) -> Response:
        """PUT: 201 makes it, 200 names it."""
        conversation_id = checked_id(request)
        title = (await request.json()).get("title")
        if title is not None and not isinstance(title, str):
            raise AlcoveError("invalid", "A title is text.")
        named = " ".join(title.split())[:_TITLE_CHARS] if title is not None else None

        def write(tx: Tx) -> tuple[bool, conversations.View]:
            made = conversations.put(tx, conversation_id, named)
            conversations.announce(tx, conversation_id)
            return made, conversations.get(tx, conversation_id)

        made, view = await self.db.write(write, durable=True)
        return Response(201 if made else 200, view)

    async def delete(self, request: Request) -> Response:
        """DELETE: stops what runs in it, then it is gone."""
        conversation_id = request.path_values["id"]
        await self.turns.cancel_all(conversation_id)
        if not await self.db.write(
            lambda tx: conversations.delete(tx, conversation_id), durable=True
        ):
            raise AlcoveError("not_found", "There is no such conversation.")
        self.db.give_back()
        return Response(204)


def checked_id(request: Request) -> str:
    """The conversation's id in the path. Raises `invalid` where it is not 26 characters of `ids.ulid()`."""
    conversation_id = request.path_values["id"]
    if not ids.is_ulid(conversation_id):
        raise AlcoveError("invalid", "A conversation's id has 26 characters (ids.ulid).")
    return conversation_id


def _cursor(text: str) -> tuple[int, str] | None:
    if not text:
        return None
    updated_at, _, conversation_id = text.partition(".")
    if not (updated_at.isascii() and updated_at.isdigit() and len(updated_at) < 19):
        raise AlcoveError("invalid", "before must be <updated_at>.<id>.")
    return int(updated_at), conversation_id
