"""Tenants: what was decided about them, keys of their instances, and what they may still do."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from infra.kit.errors import AlcoveError
from metering_proxy import wire
from metering_proxy.api.paths import Name, TenantId, Whose
from metering_proxy.audit import Audit
from metering_proxy.grants import Grants
from metering_proxy.keys import Keys
from metering_proxy.marks import Marks
from metering_proxy.quotas import Quotas
from metering_proxy.tenant_side.listeners import Listeners
from metering_proxy.tenants import Tenants


def router(
    keys: Keys,
    listeners: Listeners,
    tenants: Tenants,
    quotas: Quotas,
    grants: Grants,
    marks: Marks,
    audit: Audit,
) -> APIRouter:
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
        key = await keys.mint(tenant, generation, directory)
        try:
            # After its key: whoever follows changes ends listeners that no key is known of.
            await listeners.open(tenant, generation, directory)
        except AlcoveError:
            await keys.delete(tenant, generation)
            raise
        return wire.InstanceKey(key=key, plan=standing.plan.name, status=standing.status)

    @api.delete("/instance-keys/{tenant}/{generation}", status_code=204)
    async def delete(tenant: TenantId, generation: int) -> Response:
        listeners.check(tenant, generation)
        await keys.delete(tenant, generation)
        await listeners.close(tenant, generation)
        return Response(status_code=204)

    @api.put("/tenants/{tenant}", response_model_exclude_unset=True)
    async def put_tenant(tenant: TenantId, state: wire.TenantState) -> wire.Tenant:
        kept = await tenants.put(tenant, state)
        await marks.look([tenant])
        return kept

    @api.get("/tenants/{tenant}/quota")
    async def quota(tenant: TenantId) -> wire.Quota:
        return await quotas.quota(tenant)

    @api.get("/tenants/{tenant}/marks")
    async def marks_of(tenant: TenantId) -> wire.Marks:
        return await quotas.marks(tenant)

    @api.get("/marks")
    async def all_marks(percent: Annotated[int, Query(ge=1, le=100)] = 50) -> wire.TenantMarks:
        return await marks.listed(percent)

    @api.get("/audit")
    async def audited(
        tenant: Whose = None,
        before: Annotated[str | None, Query(pattern=r"^[0-9a-zA-Z]{1,32}$")] = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
    ) -> wire.AuditPage:
        return await audit.listed(tenant, before, limit)

    @api.get("/tenants/{tenant}/grants")
    async def listed(tenant: TenantId) -> wire.Grants:
        return await grants.listed(tenant)

    @api.put("/tenants/{tenant}/grants/{grant}")
    async def put_grant(tenant: TenantId, grant: Name, request: wire.GrantRequest) -> wire.Grant:
        return await grants.put(tenant, grant, request)

    @api.delete("/tenants/{tenant}/grants/{grant}")
    async def revoke(tenant: TenantId, grant: Name) -> wire.Grant:
        return await grants.revoke(tenant, grant)

    return api
