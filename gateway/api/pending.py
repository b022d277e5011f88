"""Messages that wait for the agent, as their sender sees them."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from starlette.responses import JSONResponse

from gateway.web.identity import Person, signed_in, written_by_our_page
from gateway.web.parts import parts
from infra.kit.errors import AlcoveError

router = APIRouter(
    prefix="/api/pending-messages",
    dependencies=[Depends(signed_in), Depends(written_by_our_page)],
)

ClientId = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


@router.get("")
async def listing(request: Request, person: Person) -> Response:
    """All that wait or failed, in their order."""
    here = parts(request)
    async with here.db.read() as reading:
        waiting = await here.pending.listing(reading, person.scope)
    return JSONResponse({"messages": [message.as_json() for message in waiting]})


@router.delete("/{client_message_id}")
async def discard(request: Request, person: Person, client_message_id: ClientId) -> Response:
    """Discards one. 404 where there is none."""
    here = parts(request)
    async with here.db.transaction() as tx:
        found = await here.pending.remove(tx, person.scope, client_message_id)
    _must_be(found)
    here.hub.tell(person.tenant, "pending")
    return Response(status_code=204)


@router.post("/{client_message_id}/retries")
async def retry(request: Request, person: Person, client_message_id: ClientId) -> Response:
    """Lets a failed one wait again, and wakes the agent."""
    here = parts(request)
    async with here.db.transaction() as tx:
        found = await here.pending.retry(tx, person.scope, client_message_id)
    _must_be(found)
    here.activity.seen(person.tenant)
    here.delivery.kick(person.scope)
    return JSONResponse({"state": "waiting", "client_message_id": client_message_id}, 202)


def _must_be(found: bool) -> None:
    if not found:
        raise AlcoveError("not_found", "No such message is waiting.")
