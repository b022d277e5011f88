"""Connections to providers, and what can be had through them: models, prices, plans."""

from fastapi import APIRouter, Response

from infra.kit.clock import Clock
from infra.kit.errors import AlcoveError
from metering_proxy import wire
from metering_proxy.api.paths import ModelName
from metering_proxy.plans import Plans
from metering_proxy.providers.breakers import Breakers, Trouble
from metering_proxy.providers.catalog import Catalog
from metering_proxy.providers.connections import Connection
from metering_proxy.providers.fallbacks import Fallbacks
from metering_proxy.providers.probing import probe
from metering_proxy.providers.providers import Providers, view
from metering_proxy.providers.upstreams import Upstreams
from metering_proxy.tenants import Tenants


def router(
    providers: Providers,
    fallbacks: Fallbacks,
    catalog: Catalog,
    upstreams: Upstreams,
    breakers: Breakers,
    tenants: Tenants,
    clock: Clock,
    host_name: str | None,
) -> APIRouter:
    """The routes. `host_name`: see `probe`."""
    api = APIRouter()

    @api.get("/providers")
    async def listed() -> wire.Providers:
        return wire.Providers(providers=await _views(catalog))

    @api.post("/providers", status_code=201)
    async def create(new: wire.NewProvider) -> wire.Provider:
        return await _view(catalog, await providers.create(new))

    @api.patch("/providers/{provider}")
    async def change(provider: str, change: wire.ProviderChange) -> wire.Provider:
        return await _view(catalog, await providers.change(provider, change))

    @api.delete("/providers/{provider}", status_code=204)
    async def delete(provider: str) -> Response:
        await providers.delete(provider)
        breakers.forget(provider)
        return Response(status_code=204)

    @api.post("/providers/{provider}/probes")
    async def probed(provider: str) -> wire.Probe:
        found = await _any(catalog, provider)
        finding = await probe(found, upstreams, clock, host_name=host_name)
        if finding.ok:
            breakers.mended(provider)
        if not found.local:
            await providers.remember_probe(provider, finding)
        return finding

    @api.get("/breakers")
    async def troubles() -> wire.Breakers:
        return wire.Breakers(breakers=[_trouble(each) for each in breakers.troubles])

    @api.get("/models")
    async def models() -> wire.Models:
        return await catalog.listing(clock.now_at())

    @api.get("/fallbacks")
    async def chains() -> wire.Fallbacks:
        return fallbacks.listed()

    @api.put("/fallbacks/{name:path}")
    async def put_chain(name: ModelName, chain: wire.FallbackTargets) -> wire.Fallback:
        known = [model.id for found in await catalog.connections() for model in found.models]
        return await fallbacks.put(name, chain.targets, known)

    @api.get("/prices")
    async def prices() -> wire.Prices:
        return wire.Prices(prices=await _prices(catalog, clock.now_at()))

    @api.get("/plans")
    async def plan_list() -> wire.Plans:
        return wire.Plans(plans=_plans(tenants.plans))

    return api


def _trouble(trouble: Trouble) -> wire.Breaker:
    provider, model, owner = trouble.key
    return wire.Breaker(
        provider=provider,
        model=model,
        payer="operator" if owner is None else "tenant",
        state=trouble.state,
        since_at=trouble.since_at,
        last_at=trouble.last_at,
        failures=trouble.failures,
        why=trouble.why,
        probe_at=trouble.probe_at,
        passed_over=trouble.passed_over,
    )


async def _views(catalog: Catalog) -> list[wire.Provider]:
    connections = await catalog.connections()
    first = next((c for c in connections if c.enabled and c.default_chat() is not None), None)
    return [view(c, is_default=c is first) for c in connections]


async def _view(catalog: Catalog, connection: Connection) -> wire.Provider:
    return next(found for found in await _views(catalog) if found.id == connection.id)


async def _any(catalog: Catalog, provider: str) -> Connection:
    for connection in await catalog.connections():
        if connection.id == provider:
            return connection
    raise AlcoveError("not_found", "there is no such connection")


async def _prices(catalog: Catalog, at: int) -> list[wire.Price]:
    return [
        wire.Price(
            id=price.id,
            model=model.id,
            from_at=price.from_at,
            input_nanos=price.rates.input,
            output_nanos=price.rates.output,
            cache_read_nanos=price.rates.read,
            cache_write_5m_nanos=price.rates.write_5m,
            cache_write_1h_nanos=price.rates.write_1h,
            demo=model.facts.demo,
        )
        for connection in await catalog.connections()
        for model in connection.models
        if (price := model.price(at)) is not None
    ]


def _plans(plans: Plans) -> list[wire.Plan]:
    return [
        wire.Plan(
            name=plan.name,
            title=plan.title,
            charge_month_nanos=plan.limit("charge_month"),
            requests_minute=plan.limit("requests_minute"),
            concurrent=plan.concurrent,
            markup_ppm=plan.markup_ppm,
            limits={kind: limit.limit for kind, limit in plan.limits.items()},
            zone=plan.zone,
            anchor=plan.anchor,
        )
        for plan in plans.by_name.values()
    ]
