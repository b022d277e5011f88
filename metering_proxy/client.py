"""The typed client of the meter's control listener, for the gateway, the spawner and the command line."""

from collections.abc import Sequence
from typing import Self

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

    async def usage(
        self,
        *,
        from_at: int,
        to_at: int,
        zone: str = "UTC",
        group: Sequence[str] = ("day", "model"),
        tenant: str | None = None,
    ) -> wire.Usage:
        """Sums of requests that began in `from_at` ≤ t < `to_at`, grouped by any of day, model, tenant, provider.

        Raises `invalid` (zone, group, more than 400 days).
        """
        params: dict[str, str | int] = {"from_at": from_at, "to_at": to_at, "zone": zone}
        if group:
            params["group"] = ",".join(group)
        if tenant is not None:
            params["tenant"] = tenant
        return wire.Usage.model_validate(await self._service.call("GET", "/usage", params=params))

    async def query_tenants(self, query: wire.TenantsQuery) -> wire.TenantsPage:
        """One page of tenants by spend, with totals over the whole query."""
        answer = await self._service.call("POST", "/tenants/query", body=query.model_dump())
        return wire.TenantsPage.model_validate(answer)

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

    async def plans(self) -> list[wire.Plan]:
        """All plans, the free one first."""
        return wire.Plans.model_validate(await self._service.call("GET", "/plans")).plans

    async def prices(self) -> list[wire.Price]:
        """Every price in force now."""
        return wire.Prices.model_validate(await self._service.call("GET", "/prices")).prices

    async def models(self) -> list[wire.Model]:
        """Every model that can be called now."""
        return wire.Models.model_validate(await self._service.call("GET", "/models")).data

    async def close(self) -> None:
        """Closes the connections."""
        await self._service.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
