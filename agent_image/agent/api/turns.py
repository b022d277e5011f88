"""/api/turns/{id}: stopping a turn, and trying one again."""

from dataclasses import dataclass

from agent import intake
from agent.api.messages import client_id, refuse_when_leaving
from agent.asgi import Request, Response
from agent.store.database import Database
from agent.turns import Turns as Lanes


@dataclass(frozen=True, slots=True)
class Turns:
    """The handlers."""

    db: Database
    turns: Lanes

    async def cancel(self, request: Request) -> Response:
        """PUT …/cancellation: 202, or 200 when it had ended and nothing happens."""
        turn_id = request.path_values["id"]
        stopping = await self.turns.cancel(turn_id)
        return Response(202 if stopping else 200, {"turn_id": turn_id})

    async def retry(self, request: Request) -> Response:
        """POST …/retries: 202, a new turn with the same words."""
        turn_id, again = request.path_values["id"], client_id(await request.json())
        refuse_when_leaving(self.turns)
        receipt = await self.db.write(
            lambda tx: intake.retry(
                tx, turn_id, again, request.request_id, request.headers.get("traceparent")
            ),
            durable=True,
        )
        self.turns.wake(receipt["conversation_id"])
        return Response(202, receipt)
