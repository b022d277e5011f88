"""Connections to other people's services, and what tenants took of their way out."""

from fastapi import APIRouter, Response

from metering_proxy import wire
from metering_proxy.api.paths import Name, TenantId
from metering_proxy.egress.egress import Egress


def router(egress: Egress) -> APIRouter:
    """The routes."""
    api = APIRouter()

    @api.get("/connections/{tenant}")
    async def listed(tenant: TenantId) -> wire.TokenConnections:
        return await egress.connections.listed(tenant)

    @api.put("/connections/{tenant}/{connection}")
    async def put(
        tenant: TenantId, connection: Name, request: wire.TokenConnectionRequest
    ) -> wire.TokenConnection:
        return await egress.connections.put(tenant, connection, request)

    @api.delete("/connections/{tenant}/{connection}", status_code=204)
    async def delete(tenant: TenantId, connection: Name) -> Response:
        await egress.connections.delete(tenant, connection)
        return Response(status_code=204)

    @api.get("/tenants/{tenant}/egress")
    async def today(tenant: TenantId) -> wire.EgressDay:
        return await egress.today(tenant)

    @api.get("/tenants/{tenant}/egress/record")
    async def record(tenant: TenantId) -> wire.EgressRecord:
        return await egress.record(tenant)

    return api
