"""/api/memory: what the assistant remembers about its person, to be seen and to be deleted."""

from dataclasses import dataclass

from agent.asgi import Request, Response
from agent.store import facts
from agent.store.database import Database
from infra.kit.errors import AlcoveError


@dataclass(frozen=True, slots=True)
class Memory:
    """The handlers."""

    db: Database

    async def index(self, request: Request) -> Response:
        """GET: facts, newest first, or best first for a query."""
        q, limit = request.query.get("q", "")[:200], request.whole("limit", 100, 1, 500)
        found = await self.db.read(lambda tx: facts.find(tx, q, limit))
        shown = [
            {
                "id": fact.id,
                "text": fact.text,
                "created_at": fact.created_at,
                "source_conversation_id": fact.source_conversation_id,
            }
            for fact in found
        ]
        return Response(body={"facts": shown})

    async def delete(self, request: Request) -> Response:
        """DELETE …/{id}: forgotten for good."""
        fact_id = request.path_values["id"]
        if await self.db.write(lambda tx: facts.delete(tx, fact_id), durable=True) is None:
            raise AlcoveError("not_found", "There is no such fact.")
        return Response(204)
