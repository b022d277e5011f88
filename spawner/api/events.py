"""The stream of one tenant's phase events: the past from the database, then what comes."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from infra.kit import sse
from spawner.api.parameters import Tenant

if TYPE_CHECKING:
    from spawner.wiring import Spawner

_HEARTBEAT_S = 15


def router(spawner: "Spawner") -> APIRouter:
    """`/instances/{tenant}/events`."""
    routes = APIRouter()

    async def frames(tenant: str, after: int) -> AsyncIterator[bytes]:
        spawner.base.metrics.streams.inc()
        try:
            yield sse.HEARTBEAT
            async for event in spawner.journal.follow(tenant, after, heartbeat_s=_HEARTBEAT_S):
                if event is None:
                    yield sse.HEARTBEAT
                else:
                    yield sse.frame(event.model_dump_json(), event_id=str(event.seq))
        finally:
            spawner.base.metrics.streams.dec()

    @routes.get("/instances/{tenant}/events")
    async def events(
        tenant: Tenant,
        after: Annotated[int, Query(ge=0)] = 0,
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> StreamingResponse:
        if last_event_id is not None and last_event_id.isascii() and last_event_id.isdigit():
            after = int(last_event_id)
        return StreamingResponse(
            frames(tenant, after), media_type=sse.CONTENT_TYPE, headers=sse.HEADERS
        )

    return routes
