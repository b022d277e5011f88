"""The agent's routes, one by one as docs/contracts.md lists them; what is not listed is not relayed.

A path is built anew from its template and checked ids, so that nothing a browser encodes into an
address can reach another route of the agent. The query and the body pass as they came.
"""

import re
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from starlette.responses import JSONResponse

from gateway.relay.forward import Answer, Call
from gateway.web.identity import Person, signed_in, written_by_our_page
from gateway.web.parts import Parts, parts
from infra.kit.errors import AlcoveError

router = APIRouter(prefix="/api", dependencies=[Depends(signed_in), Depends(written_by_our_page)])

_ID = r"[A-Za-z0-9_-]{1,64}"
_CLIENT_ID = re.compile(_ID)
Id = Annotated[str, Path(pattern=f"^{_ID}$")]
# The agent takes no other (ids.ulid); kept for one that sleeps, a message under another would be lost.
ConversationId = Annotated[str, Path(pattern=r"^[0-9a-hjkmnp-tv-z]{26}$")]
# What may have reached the agent, or not: kept, and sent again under the same id.
_UNSURE = frozenset(("unavailable", "timeout", "bad_gateway"))


class NewMessage(BaseModel):
    """Body of `POST /api/conversations/{id}/messages`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    client_message_id: str = Field(pattern=f"^{_ID}$")
    text: str = Field(min_length=1, max_length=32_000)
    channel: Literal["web"] = "web"
    source: Literal["user"] = "user"

    @field_validator("text")
    @classmethod
    def _is_text(cls, text: str) -> str:
        text.encode()  # a lone surrogate is no text (UnicodeEncodeError is a ValueError)
        return text


@router.get("/conversations")
async def conversations(request: Request, person: Person) -> Response:
    """The list, newest first."""
    return await _relayed(request, person.tenant, "/api/conversations")


@router.put("/conversations/{conversation_id}")
async def put_conversation(
    request: Request, person: Person, conversation_id: ConversationId
) -> Response:
    """Makes or renames one."""
    return await _relayed(request, person.tenant, f"/api/conversations/{conversation_id}")


@router.delete("/conversations/{conversation_id}")
async def delete_conversation(
    request: Request, person: Person, conversation_id: ConversationId
) -> Response:
    """Deletes one; its turn is cancelled."""
    return await _relayed(request, person.tenant, f"/api/conversations/{conversation_id}")


@router.get("/conversations/{conversation_id}/messages")
async def messages(request: Request, person: Person, conversation_id: ConversationId) -> Response:
    """A page of one conversation's messages."""
    return await _relayed(request, person.tenant, f"/api/conversations/{conversation_id}/messages")


@router.post("/conversations/{conversation_id}/messages")
async def post_message(
    request: Request, person: Person, conversation_id: ConversationId
) -> Response:
    """Hands a message to the agent; one that is not ready is woken and given it later.

    202 with the agent's answer, or 202 `{"state": "waiting"}`.
    """
    here = parts(request)
    body = await request.body()
    message = _message(body)
    here.activity.seen(person.tenant)
    if not await here.delivery.something_waits(person.scope):
        call = Call("POST", _target(request, conversation_id), request.headers.items(), body)
        try:
            return _response(await here.relay.send(person.tenant, call))
        except AlcoveError as error:
            if error.code not in _UNSURE:
                raise
    await here.delivery.take(person.scope, conversation_id, message.client_message_id, message.text)
    waiting = {
        "state": "waiting",
        "client_message_id": message.client_message_id,
        "conversation_id": conversation_id,
    }
    return JSONResponse(waiting, 202)


@router.put("/turns/{turn_id}/cancellation")
async def cancel_turn(request: Request, person: Person, turn_id: Id) -> Response:
    """Stops a turn; what was written stays."""
    return await _relayed(request, person.tenant, f"/api/turns/{turn_id}/cancellation")


@router.post("/turns/{turn_id}/retries")
async def retry_turn(request: Request, person: Person, turn_id: Id) -> Response:
    """A new turn with the same text."""
    return await _relayed(request, person.tenant, f"/api/turns/{turn_id}/retries")


@router.get("/memory")
async def memory(request: Request, person: Person) -> Response:
    """What the assistant remembers."""
    return await _relayed(request, person.tenant, "/api/memory")


@router.delete("/memory/{fact_id}")
async def forget(request: Request, person: Person, fact_id: Id) -> Response:
    """Forgets one fact."""
    return await _relayed(request, person.tenant, f"/api/memory/{fact_id}")


async def _relayed(request: Request, tenant: str, path: str) -> Response:
    here = parts(request)
    query: bytes = request.scope["query_string"]
    target = f"{path}?{query.decode('ascii')}" if query else path
    body = await request.body()
    if request.method != "GET":
        here.activity.seen(tenant)
    call = Call(request.method, target, request.headers.items(), body)
    try:
        return _response(await here.relay.send(tenant, call))
    except AlcoveError as error:
        if request.method != "GET" and error.reason == "agent_asleep":
            await _wake(here, tenant)
        raise


async def _wake(here: Parts, tenant: str) -> None:
    """A person wants something of an agent that sleeps: it is woken, and they try again."""
    await here.instances.wake(tenant, "message")


def _target(request: Request, conversation_id: str) -> str:
    return f"/api/conversations/{conversation_id}/messages"


def _message(body: bytes) -> NewMessage:
    try:
        return NewMessage.model_validate_json(body)
    except ValidationError as error:
        problems = [
            {"field": ".".join(str(part) for part in item["loc"]), "problem": item["msg"]}
            for item in error.errors()
        ]
        raise AlcoveError("invalid", "This is not a message.", fields=problems) from None


def _response(answer: Answer) -> Response:
    if answer.status == 204:
        return Response(status_code=204)
    return Response(answer.body, answer.status, media_type="application/json")
