"""Keys that people hold, and tenants' own keys to providers."""

from fastapi import APIRouter, Response

from infra.kit.clock import Clock
from metering_proxy import wire
from metering_proxy.api.paths import Name, TenantId
from metering_proxy.api_keys import ApiKeys
from metering_proxy.own_keys import OwnKeys
from metering_proxy.providers.probing import probe
from metering_proxy.providers.upstreams import Upstreams


def router(api_keys: ApiKeys, own_keys: OwnKeys, upstreams: Upstreams, clock: Clock) -> APIRouter:
    """The routes."""
    api = APIRouter(prefix="/tenants/{tenant}")

    @api.get("/api-keys")
    async def listed(tenant: TenantId) -> wire.ApiKeys:
        return await api_keys.listed(tenant)

    @api.post("/api-keys", status_code=201)
    async def create(tenant: TenantId, request: wire.ApiKeyRequest) -> wire.NewApiKey:
        return await api_keys.create(tenant, request)

    @api.post("/api-keys/{key}/rotations", status_code=201)
    async def rotate(tenant: TenantId, key: Name) -> wire.NewApiKey:
        return await api_keys.rotate(tenant, key)

    @api.delete("/api-keys/{key}")
    async def revoke(tenant: TenantId, key: Name) -> wire.ApiKey:
        return await api_keys.revoke(tenant, key)

    @api.get("/provider-keys")
    async def own(tenant: TenantId) -> wire.OwnKeys:
        return await own_keys.listed(tenant)

    @api.put("/provider-keys/{provider}")
    async def put(tenant: TenantId, provider: Name, request: wire.OwnKeyRequest) -> wire.OwnKey:
        return await own_keys.put(tenant, provider, request.key)

    @api.post("/provider-keys/{provider}/probes")
    async def tried(tenant: TenantId, provider: Name, request: wire.OwnKeyRequest) -> wire.Probe:
        return await probe(own_keys.tried(provider, request.key), upstreams, clock)

    @api.delete("/provider-keys/{provider}", status_code=204)
    async def delete(tenant: TenantId, provider: Name) -> Response:
        await own_keys.delete(tenant, provider)
        return Response(status_code=204)

    return api
