"""Instances: wanting one, looking at it, stopping it, saying that a person was there."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Response

from spawner import wire
from spawner.api.parameters import Tenant
from spawner.instances import Row, absent, read
from spawner.query import query

if TYPE_CHECKING:
    from spawner.wiring import Spawner


def router(spawner: "Spawner") -> APIRouter:
    """`/instances…`, without its events."""
    routes = APIRouter()

    @routes.put("/instances/{tenant}")
    async def wake(tenant: Tenant, body: wire.Wake, response: Response) -> wire.Instance:
        if body.wake:
            instance = spawner.shown(await spawner.ensure.awake(tenant, body.reason))
        else:
            instance = await look(tenant)
        response.status_code = 200 if instance.state == "ready" or not body.wake else 202
        return instance

    @routes.get("/instances/{tenant}")
    async def look(tenant: Tenant) -> wire.Instance:
        async with spawner.base.db.read() as reading:
            row = await read(reading, tenant)
        return spawner.shown(row) if row else absent(tenant)

    @routes.delete("/instances/{tenant}", status_code=202)
    async def stop(
        tenant: Tenant, reason: Annotated[str, Query(max_length=64)] = "admin"
    ) -> wire.Instance:
        message = "An administrator put it to sleep" if reason == "admin" else None
        return spawner.shown(await spawner.ensure.asleep(tenant, message))

    @routes.put("/instances/{tenant}/clearing")
    async def clear(tenant: Tenant) -> wire.Instance:
        return spawner.shown(await spawner.ensure.clear(tenant))

    @routes.put("/instances/{tenant}/activity", status_code=204)
    async def activity(tenant: Tenant, body: wire.Activity) -> None:
        await spawner.ensure.person_was_here(tenant, body.person_at)

    @routes.post("/instances/query")
    async def pages(body: wire.InstanceQuery) -> wire.InstancePage:
        async with spawner.base.db.read() as reading:
            rows, total = await query(reading, body)
        shown_rows = [spawner.shown(one) if isinstance(one, Row) else absent(one) for one in rows]
        return wire.InstancePage(rows=shown_rows, total=total)

    return routes
