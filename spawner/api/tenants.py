"""What the gateway decides about a tenant: its plan, and whether it is suspended."""

from typing import TYPE_CHECKING

from fastapi import APIRouter

from spawner import wire
from spawner.api.parameters import Tenant

if TYPE_CHECKING:
    from spawner.wiring import Spawner


def router(spawner: "Spawner") -> APIRouter:
    """`/tenants/{tenant}/…`."""
    routes = APIRouter()

    @routes.put("/tenants/{tenant}/suspension")
    async def suspend(tenant: Tenant) -> wire.Instance:
        return spawner.shown(await spawner.ensure.suspend(tenant))

    @routes.delete("/tenants/{tenant}/suspension")
    async def resume(tenant: Tenant) -> wire.Instance:
        return spawner.shown(await spawner.ensure.resume(tenant))

    @routes.put("/tenants/{tenant}/plan")
    async def plan(tenant: Tenant, body: wire.PlanChoice) -> wire.Instance:
        return spawner.shown(await spawner.ensure.set_plan(tenant, body.plan))

    return routes
