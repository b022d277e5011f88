"""The typed client of the meter's control listener, for the gateway, the spawner and the command line."""

from collections.abc import AsyncIterator, Sequence
from typing import Literal, Self

from infra.kit.client import ServiceClient
from metering_proxy import wire


class MeterClient:
    """Calls the meter.

    Every method raises the `AlcoveError` that the meter raised; `unavailable` where nobody answers,
    `timeout` where the answer does not come.
    """

    def __init__(self, url: str, secret: str) -> None:
        self._service = ServiceClient(url, secret, name="meter")

    @property
    def service(self) -> ServiceClient:
        """The client below, for readiness."""
        return self._service

    async def mint_key(self, tenant: str, generation: int, directory: str) -> wire.InstanceKey:
        """A new key for this generation, the one before it dead, and the tenant's listener bound in `directory`.

        Raises `invalid` (ids, or a directory that is not this generation's), `forbidden` (deleted tenant).
        """
        answer = await self._service.call(
            "PUT", f"/instance-keys/{tenant}/{generation}", body={"directory": directory}
        )
        return wire.InstanceKey.model_validate(answer)

    async def delete_key(self, tenant: str, generation: int) -> None:
        """Ends the key and its listener; no error where there is none."""
        await self._service.call("DELETE", f"/instance-keys/{tenant}/{generation}")

    async def put_tenant(self, tenant: str, state: wire.TenantState) -> wire.Tenant:
        """Hands over what was decided; answers the row kept: another call's, if its version is higher.

        Raises `invalid` (unknown plan).
        """
        body = state.model_dump(exclude_unset=True)
        return wire.Tenant.model_validate(
            await self._service.call("PUT", f"/tenants/{tenant}", body=body)
        )

    async def quota(self, tenant: str) -> wire.Quota:
        """What the tenant may still do."""
        return wire.Quota.model_validate(
            await self._service.call("GET", f"/tenants/{tenant}/quota")
        )

    async def marks(self, tenant: str) -> list[wire.Mark]:
        """The marks that the tenant's use of its limits has passed, newest first."""
        answer = await self._service.call("GET", f"/tenants/{tenant}/marks")
        return wire.Marks.model_validate(answer).marks

    async def audit(
        self, *, tenant: str | None = None, before: str | None = None, limit: int = 50
    ) -> wire.AuditPage:
        """The audit of a tenant or of all, newest first; `before` is an answer's `next`."""
        params: dict[str, str | int] = {"limit": limit}
        params |= {k: v for k, v in (("tenant", tenant), ("before", before)) if v is not None}
        answer = await self._service.call("GET", "/audit", params=params)
        return wire.AuditPage.model_validate(answer)

    async def all_marks(self, percent: int = 50) -> list[wire.TenantMark]:
        """Each tenant's highest mark of at least `percent`, in the windows that run."""
        answer = await self._service.call("GET", "/marks", params={"percent": percent})
        return wire.TenantMarks.model_validate(answer).marks

    async def put_grant(self, tenant: str, grant: str, request: wire.GrantRequest) -> wire.Grant:
        """Money beside the plan, under an id of the caller's; the same again changes nothing.

        Raises `invalid` (reason `grace`, `expires_at`), `conflict` (reason `grant`: the id is another's).
        """
        answer = await self._service.call(
            "PUT", f"/tenants/{tenant}/grants/{grant}", body=request.model_dump()
        )
        return wire.Grant.model_validate(answer)

    async def revoke_grant(self, tenant: str, grant: str) -> wire.Grant:
        """Ends a grant; what running calls hold of it they may spend. Raises `not_found`."""
        answer = await self._service.call("DELETE", f"/tenants/{tenant}/grants/{grant}")
        return wire.Grant.model_validate(answer)

    async def grants(self, tenant: str) -> list[wire.Grant]:
        """A tenant's grants in the order in which they are spent."""
        answer = await self._service.call("GET", f"/tenants/{tenant}/grants")
        return wire.Grants.model_validate(answer).grants

    async def create_api_key(self, tenant: str, request: wire.ApiKeyRequest) -> wire.NewApiKey:
        """A key for a person, shown once. Raises `conflict` (reason `keys`: there are enough)."""
        answer = await self._service.call(
            "POST", f"/tenants/{tenant}/api-keys", body=request.model_dump()
        )
        return wire.NewApiKey.model_validate(answer)

    async def rotate_api_key(self, tenant: str, key: str) -> wire.NewApiKey:
        """A new key in the place of one, which works for a day more. Raises `not_found`, `conflict` (`ended`)."""
        answer = await self._service.call("POST", f"/tenants/{tenant}/api-keys/{key}/rotations")
        return wire.NewApiKey.model_validate(answer)

    async def revoke_api_key(self, tenant: str, key: str) -> wire.ApiKey:
        """Ends a key everywhere within a second. Raises `not_found`."""
        answer = await self._service.call("DELETE", f"/tenants/{tenant}/api-keys/{key}")
        return wire.ApiKey.model_validate(answer)

    async def api_keys(self, tenant: str) -> list[wire.ApiKey]:
        """All keys that people hold of a tenant, newest first."""
        answer = await self._service.call("GET", f"/tenants/{tenant}/api-keys")
        return wire.ApiKeys.model_validate(answer).keys

    async def put_own_key(self, tenant: str, provider: str, key: str) -> wire.OwnKey:
        """Seals the tenant's own key to a connection. Raises `not_found`, `invalid` (`details.fields`)."""
        answer = await self._service.call(
            "PUT", f"/tenants/{tenant}/provider-keys/{provider}", body={"key": key}
        )
        return wire.OwnKey.model_validate(answer)

    async def probe_own_key(self, tenant: str, provider: str, key: str) -> wire.Probe:
        """Calls a connection once with a key that is not kept. Raises as `put_own_key`."""
        answer = await self._service.call(
            "POST",
            f"/tenants/{tenant}/provider-keys/{provider}/probes",
            body={"key": key},
            timeout_s=20,
        )
        return wire.Probe.model_validate(answer)

    async def delete_own_key(self, tenant: str, provider: str) -> None:
        """Forgets the tenant's own key; no error where there is none."""
        await self._service.call("DELETE", f"/tenants/{tenant}/provider-keys/{provider}")

    async def own_keys(self, tenant: str) -> list[wire.OwnKey]:
        """To which connections the tenant has its own key."""
        answer = await self._service.call("GET", f"/tenants/{tenant}/provider-keys")
        return wire.OwnKeys.model_validate(answer).keys

    async def usage(
        self,
        *,
        from_at: int,
        to_at: int,
        zone: str = "UTC",
        group: Sequence[str] = ("day", "model"),
        tenant: str | None = None,
    ) -> wire.Usage:
        """Sums of requests that began in `from_at` ≤ t < `to_at`, grouped by any of
        day, model, tenant, provider, payer.

        Raises `invalid` (zone, group, more than 400 days).
        """
        params: dict[str, str | int] = {"from_at": from_at, "to_at": to_at, "zone": zone}
        if group:
            params["group"] = ",".join(group)
        if tenant is not None:
            params["tenant"] = tenant
        return wire.Usage.model_validate(await self._service.call("GET", "/usage", params=params))

    async def export(
        self,
        *,
        from_at: int,
        to_at: int,
        form: Literal["csv", "jsonl"] = "csv",
        tenant: str | None = None,
    ) -> AsyncIterator[bytes]:
        """Ledger entries of requests that began in the period, as a file in parts. Raises `invalid` (period)."""
        params: dict[str, str | int] = {"from_at": from_at, "to_at": to_at, "format": form}
        if tenant is not None:
            params["tenant"] = tenant
        async for chunk in self._service.chunks("/usage/export", params=params):
            yield chunk

    async def requests(
        self,
        *,
        tenant: str | None = None,
        before: str | None = None,
        limit: int = 50,
        failed: bool = False,
    ) -> wire.RequestRows:
        """Ended calls, newest first, or only those that `failed`; `before` is an answer's `next`."""
        params: dict[str, str | int] = {"limit": limit}
        params |= {"failed": "true"} if failed else {}
        params |= {k: v for k, v in (("tenant", tenant), ("before", before)) if v is not None}
        return wire.RequestRows.model_validate(
            await self._service.call("GET", "/requests", params=params)
        )

    async def request(self, request_id: str) -> wire.RequestDetail:
        """Everything that is kept of one call. Raises `not_found`."""
        answer = await self._service.call("GET", f"/requests/{request_id}")
        return wire.RequestDetail.model_validate(answer)

    async def reprice(self, asked: wire.RepriceRequest) -> wire.Reprice:
        """Prices ended calls anew and enters the differences. Raises `invalid` (period), `unavailable`."""
        answer = await self._service.call(
            "POST", "/repricings", body=asked.model_dump(), timeout_s=600
        )
        return wire.Reprice.model_validate(answer)

    async def query_tenants(self, query: wire.TenantsQuery) -> wire.TenantsPage:
        """One page of tenants by spend, with totals over the whole query."""
        answer = await self._service.call("POST", "/tenants/query", body=query.model_dump())
        return wire.TenantsPage.model_validate(answer)

    async def fallbacks(self) -> list[wire.Fallback]:
        """The chains of models that answer in each other's place."""
        answer = await self._service.call("GET", "/fallbacks")
        return wire.Fallbacks.model_validate(answer).fallbacks

    async def put_fallback(self, name: str, targets: list[str]) -> wire.Fallback:
        """Replaces the chain of a model or an alias; none: it has no more. Raises `invalid` (details.fields)."""
        answer = await self._service.call("PUT", f"/fallbacks/{name}", body={"targets": targets})
        return wire.Fallback.model_validate(answer)

    async def providers(self) -> list[wire.Provider]:
        """All connections."""
        answer = await self._service.call("GET", "/providers")
        return wire.Providers.model_validate(answer).providers

    async def create_provider(self, new: wire.NewProvider) -> wire.Provider:
        """Makes a connection, live at once. Raises `invalid` with `details.fields`."""
        answer = await self._service.call("POST", "/providers", body=new.model_dump())
        return wire.Provider.model_validate(answer)

    async def change_provider(self, provider: str, change: wire.ProviderChange) -> wire.Provider:
        """Changes a connection; running calls end with what they began with. Raises `not_found`, `invalid`."""
        body = change.model_dump(exclude_unset=True)
        answer = await self._service.call("PATCH", f"/providers/{provider}", body=body)
        return wire.Provider.model_validate(answer)

    async def delete_provider(self, provider: str) -> None:
        """Forgets a connection and its key; its ledger entries stay. Raises `not_found`."""
        await self._service.call("DELETE", f"/providers/{provider}")

    async def probe_provider(self, provider: str) -> wire.Probe:
        """Calls the provider once, for real, and says what it found. Raises `not_found`."""
        answer = await self._service.call("POST", f"/providers/{provider}/probes", timeout_s=20)
        return wire.Probe.model_validate(answer)

    async def breakers(self) -> list[wire.Breaker]:
        """Models whose last call failed, and how they are left alone."""
        return wire.Breakers.model_validate(await self._service.call("GET", "/breakers")).breakers

    async def plans(self) -> list[wire.Plan]:
        """All plans, the free one first."""
        return wire.Plans.model_validate(await self._service.call("GET", "/plans")).plans

    async def prices(self) -> list[wire.Price]:
        """Every price in force now."""
        return wire.Prices.model_validate(await self._service.call("GET", "/prices")).prices

    async def models(self) -> list[wire.Model]:
        """Every model that can be called now."""
        return wire.Models.model_validate(await self._service.call("GET", "/models")).data

    async def token_connections(self, tenant: str) -> list[wire.TokenConnection]:
        """The tenant's connections to other people's services, without their tokens."""
        answer = await self._service.call("GET", f"/connections/{tenant}")
        return wire.TokenConnections.model_validate(answer).connections

    async def put_token_connection(
        self, tenant: str, connection: str, given: wire.TokenConnectionRequest
    ) -> wire.TokenConnection:
        """Hands over an access token for one origin, in the place of the one before it. Raises `invalid`."""
        answer = await self._service.call(
            "PUT", f"/connections/{tenant}/{connection}", body=given.model_dump()
        )
        return wire.TokenConnection.model_validate(answer)

    async def delete_token_connection(self, tenant: str, connection: str) -> None:
        """Forgets a connection and its token; no error where there is none."""
        await self._service.call("DELETE", f"/connections/{tenant}/{connection}")

    async def egress_day(self, tenant: str) -> wire.EgressDay:
        """What the tenant has taken of its day on its ways out."""
        return wire.EgressDay.model_validate(
            await self._service.call("GET", f"/tenants/{tenant}/egress")
        )

    async def egress_record(self, tenant: str) -> wire.EgressRecord:
        """What the tenant took of its last days on its ways out, and what it was refused there."""
        return wire.EgressRecord.model_validate(
            await self._service.call("GET", f"/tenants/{tenant}/egress/record")
        )

    async def close(self) -> None:
        """Closes the connections."""
        await self._service.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
