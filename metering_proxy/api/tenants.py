"""Keys of instances, tenants, quotas and usage."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response

from infra.kit import ids
from infra.kit.errors import AlcoveError
from metering_proxy import wire
from metering_proxy.keys import Keys
from metering_proxy.tenant_side.listeners import Listeners
from metering_proxy.tenants import Tenants
from metering_proxy.usage import Reports


def router(keys: Keys, listeners: Listeners, tenants: Tenants, reports: Reports) -> APIRouter:
    """The routes."""
    api = APIRouter()

    @api.put("/instance-keys/{tenant}/{generation}")
    async def mint(
        tenant: str, generation: int, request: wire.InstanceKeyRequest
    ) -> wire.InstanceKey:
        standing = tenants.standing(tenant)
        if standing.status == "deleted":
            standing.admit()
        directory = listeners.directory(tenant, generation, request.directory)
        await listeners.open(tenant, generation, directory)
        key = await keys.mint(tenant, generation, directory)
        return wire.InstanceKey(key=key, plan=standing.plan.name, status=standing.status)

    @api.delete("/instance-keys/{tenant}/{generation}", status_code=204)
    async def delete(tenant: str, generation: int) -> Response:
        await keys.delete(tenant, generation)
        await listeners.close(tenant, generation)
        return Response(status_code=204)

    @api.put("/tenants/{tenant}", response_model_exclude_unset=True)
    async def put_tenant(tenant: str, state: wire.TenantState) -> wire.Tenant:
        return await tenants.put(_tenant(tenant), state)

    @api.get("/tenants/{tenant}/quota")
    async def quota(tenant: str) -> wire.Quota:
        return await reports.quota(_tenant(tenant))

    @api.post("/tenants/query")
    async def query(asked: wire.TenantsQuery) -> wire.TenantsPage:
        return await reports.tenants(asked)

    @api.get("/usage")
    async def usage(
        from_at: Annotated[int, Query(ge=0, le=2**62)],
        to_at: Annotated[int, Query(ge=0, le=2**62)],
        tenant: str | None = None,
        zone: str = "UTC",
        group: str = "",
    ) -> wire.Usage:
        return await reports.usage(
            account=tenant, from_at=from_at, to_at=to_at, zone=zone, group=_names(group)
        )

    return api


def _tenant(tenant: str) -> str:
    if not ids.is_tenant_id(tenant):
        raise AlcoveError("invalid", f"{tenant!r} is not the id of a tenant")
    return tenant


def _names(text: str) -> Sequence[str]:
    return [name for name in text.split(",") if name]
