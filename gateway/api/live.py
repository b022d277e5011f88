"""The tab's one stream, waking, and who is signed in."""

from typing import Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, ConfigDict
from starlette.responses import JSONResponse

from gateway.stream.cursor import Cursor
from gateway.stream.response import StreamResponse
from gateway.stream.tab import Rooms, Tab
from gateway.web.identity import Person, Present, signed_in, written_by_our_page
from gateway.web.parts import parts
from spawner.wire import Instance, Reason

router = APIRouter(prefix="/api")


class Waking(BaseModel):
    """Body of `POST /api/wake`."""

    model_config = ConfigDict(extra="forbid")

    reason: Literal["page", "person"] = "page"


@router.get("/stream")
async def stream(request: Request, present: Present, cursor: str | None = None) -> Response:
    """One EventSource a tab. Wakes nothing and counts as nobody's activity."""
    here = parts(request)
    listener = here.hub.join(present.session_id, present.tenant)
    rooms = Rooms(
        here.db,
        here.pending,
        here.quotas,
        here.instances,
        here.upstreams,
        here.spawner,
        here.limits,
        here.clock,
    )
    since = Cursor.parse(request.headers.get("last-event-id") or cursor)
    return StreamResponse(
        Tab(rooms, present, listener, since).frames(),
        listener,
        here.hub,
        here.limits.stream_s,
        here.metrics.streams.inc,
    )


@router.post("/wake", dependencies=[Depends(signed_in), Depends(written_by_our_page)])
async def wake(request: Request, person: Person, body: Waking) -> Response:
    """Wakes the person's agent; answers its instance, without addresses."""
    here = parts(request)
    here.activity.seen(person.tenant)
    reason: Reason = "page" if body.reason == "page" else "message"
    instance = await here.instances.wake(person.tenant, reason)
    return JSONResponse(public(instance))


@router.get("/session")
async def session(person: Person) -> Response:
    """Who is signed in, and the token for writes: lets an open page go on after a new sign-in."""
    return JSONResponse({"email": person.email, "is_admin": person.is_admin, "csrf": person.csrf})


def public(instance: Instance) -> dict[str, object]:
    """An instance without what only rooms need to know."""
    return instance.model_dump(mode="json", exclude={"url", "owner_uid"})
