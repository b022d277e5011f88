"""What the person's assistant has stored beside what the plan gives, and the way out for who has filled it."""

import asyncio
from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from gateway.pages.render import see_other
from gateway.quota import GLANCE_S, nearness
from gateway.tenants import audit
from gateway.web.identity import Person, actor, signed_in, written_by_our_page
from gateway.web.parts import Parts, parts
from infra.kit.errors import AlcoveError

router = APIRouter(
    prefix="/account/storage", dependencies=[Depends(signed_in), Depends(written_by_our_page)]
)


@router.post("/clearing")
async def clear(request: Request, person: Person) -> Response:
    """Wakes the assistant past its storage for a quarter of an hour, so that the person can delete."""
    here = parts(request)
    try:
        granted = await here.spawner.clear(person.tenant)
    except AlcoveError as error:
        if error.reason != "storage_past_ceiling":
            raise
        return see_other(
            request, "/account", error=f"{error.message} Ask whoever runs this Alcove to clear it."
        )
    async with here.db.transaction() as tx:
        await audit.write(tx, actor(request, person), "storage.clearing", tenant=person.tenant)
    await here.instances.wake(person.tenant, "page")
    if granted.clearing_until_at is None:
        return see_other(request, "/account", notice="There is room already; your assistant wakes.")
    return see_other(
        request,
        "/account",
        notice="Your assistant wakes for a quarter of an hour. Delete in the chat what you no longer need.",
    )


async def stored_or_none(here: Parts, tenant: str) -> dict[str, Any] | None:
    """*Storage* of the templates; None while the spawner cannot be asked, for which no page waits long."""
    try:
        async with asyncio.timeout(GLANCE_S):
            found = await here.instances.ask(tenant)
    except (AlcoveError, TimeoutError):
        return None
    limit_bytes, stored_bytes = found.storage_bytes, found.stored_bytes
    percent = 0
    if stored_bytes is not None and limit_bytes:
        percent = stored_bytes * 100 // limit_bytes
    until_at = found.clearing_until_at
    is_full = stored_bytes is not None and limit_bytes is not None and stored_bytes > limit_bytes
    return {
        "stored_bytes": stored_bytes,
        "limit_bytes": limit_bytes,
        "percent": percent,
        "level": "out" if is_full else nearness(percent),
        "clearing_until_at": until_at if until_at and until_at > here.clock.now_at() else None,
    }
