"""The wiring of the meter: all its parts are made here, started in one order and stopped in the other.

`create_app` gives the control application; `Meter.running` brings the tenants' side to life beside it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import Depends, FastAPI

from infra.kit import httpd, service
from infra.kit.clock import Clock, SystemClock
from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from infra.kit.jobs import Jobs
from infra.kit.metrics import Metrics
from infra.kit.relay import Timeouts
from infra.kit.tracing import Tracing
from metering_proxy import jobs, models, plans
from metering_proxy.api import egress as egress_api
from metering_proxy.api import keys as keys_api
from metering_proxy.api import problems
from metering_proxy.api import providers as providers_api
from metering_proxy.api import reports as reports_api
from metering_proxy.api import tenants as tenants_api
from metering_proxy.api_keys import ApiKeys
from metering_proxy.audit import Audit
from metering_proxy.changes import Changes
from metering_proxy.egress.egress import Egress
from metering_proxy.egress.outside import Outside
from metering_proxy.exports import Exports
from metering_proxy.grants import Grants
from metering_proxy.keys import Keys
from metering_proxy.ledger.ledger import Ledger
from metering_proxy.marks import Marks
from metering_proxy.own_keys import OwnKeys
from metering_proxy.providers import price_file
from metering_proxy.providers.breakers import Breakers
from metering_proxy.providers.catalog import Catalog
from metering_proxy.providers.detection import Detection
from metering_proxy.providers.dialling import Dialling
from metering_proxy.providers.fallbacks import Fallbacks
from metering_proxy.providers.providers import Providers
from metering_proxy.providers.upstreams import Upstreams
from metering_proxy.quotas import Quotas
from metering_proxy.reloading import Reloading
from metering_proxy.repricing import Repricing
from metering_proxy.requests import Requests
from metering_proxy.settings import MeterSettings
from metering_proxy.telemetry import Telemetry
from metering_proxy.tenant_side.calls import Calls
from metering_proxy.tenant_side.door import Door
from metering_proxy.tenant_side.listeners import Listeners
from metering_proxy.tenant_side.programs import Programs
from metering_proxy.tenants import Tenants
from metering_proxy.usage import Reports

PACKAGE = "metering_proxy"
_LIMITS = httpd.Limits(connections=256)


@dataclass(frozen=True)
class Meter:
    """The parts of one meter process."""

    settings: MeterSettings
    db: Database
    keys: Keys
    tenants: Tenants
    providers: Providers
    fallbacks: Fallbacks
    own_keys: OwnKeys
    changes: Changes
    detection: Detection
    upstreams: Upstreams
    ledger: Ledger
    calls: Calls
    egress: Egress
    listeners: Listeners
    programs: Programs
    marks: Marks
    reloading: Reloading
    metrics: Metrics
    tracing: Tracing
    jobs: Jobs
    app: FastAPI

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Reads what there is, binds every live generation's socket, and serves tenants while the block runs.

        On leaving, streams get their time to end, everything settles, and the ledger is written out.
        """
        await self.changes.begin()
        await self.tenants.load()
        await self.providers.load()
        await self.fallbacks.load()
        await self.own_keys.load()
        self.ledger.start()
        await self.ledger.sweep()
        await self.listeners.open_all(await self.keys.load())
        await self.programs.open()
        self.changes.start()
        self.jobs.start()
        try:
            yield
        finally:
            grace_s = self.settings.stream_grace_s
            await asyncio.gather(self.programs.shut(grace_s), self.listeners.shut(grace_s))
            await self.calls.close()
            await self.jobs.stop()
            with contextlib.suppress(AlcoveError):  # a database that is gone takes no note of it
                await self.keys.tell_used()
            await self.changes.close()
            await self.ledger.close()
            await self.detection.close()
            await self.upstreams.close()
            await self.egress.close()
            await self.db.close()
            self.tracing.close()


def create_app(
    settings: MeterSettings,
    *,
    clock: Clock | None = None,
    limits: httpd.Limits | None = None,
    capacity: httpd.Capacity | None = None,
    timeouts: Timeouts | None = None,
    outside: Outside | None = None,
    dialling: Dialling | None = None,
) -> Meter:
    """Builds a meter. `clock`: instead of the machine's and the database's; `limits` of each listener, `capacity`
    of all, `timeouts` towards providers; `outside`, `dialling`: instead of the public internet and of providers.
    """
    metrics, tracing = Metrics("meter"), Tracing.from_environment("meter")
    telemetry = Telemetry(metrics, tracing)
    now = clock or SystemClock()
    db = Database(settings.database_url, durable=True, clock=clock)
    all_known = price_file.load(settings.prices_file)
    keys, tenants = Keys(db, now), Tenants(db, plans.load(settings.plans_file), now)
    providers = Providers(db, settings.sealer, all_known, now)
    own_keys = OwnKeys(db, settings.sealer, providers, now)
    towards = dialling or Dialling(connect_s=(timeouts or Timeouts()).connect_s)
    detection = Detection(
        all_known,
        towards,
        model_url=settings.local_model_url,
        embeddings_url=settings.embeddings_url,
        loopback=settings.loopback_providers,
    )
    fallbacks = Fallbacks(db)
    catalog = Catalog(providers, detection, fallbacks)
    upstreams = Upstreams(towards, timeouts)
    ledger = Ledger(db, lease_s=settings.lease_s, clock=clock)
    breakers = Breakers(now)
    calls = Calls(
        tenants=tenants,
        catalog=catalog,
        own_keys=own_keys,
        upstreams=upstreams,
        breakers=breakers,
        ledger=ledger,
        telemetry=telemetry,
        clock=now,
    )
    egress = Egress(db, tenants, settings.sealer, providers, metrics.registry, now, outside)
    door = Door(keys, tenants, catalog, calls, egress, telemetry, now)
    shared = capacity or httpd.Capacity()
    listeners = Listeners(door.answer, settings.sockets_dir, limits or _LIMITS, shared)
    marks = Marks(db, tenants, telemetry, now)
    reloading = Reloading(
        plans_file=settings.plans_file,
        prices_file=settings.prices_file,
        tenants=tenants,
        marks=marks,
        providers=providers,
        detection=detection,
        telemetry=telemetry,
    )
    app = FastAPI(title="Alcove meter", openapi_url=None)
    service.install(
        app, metrics=metrics, tracing=tracing, checks=[service.database_check(db, PACKAGE)]
    )
    for router in (
        tenants_api.router(
            keys, listeners, tenants, Quotas(db, tenants, now), Grants(db, now), marks, Audit(db)
        ),
        keys_api.router(ApiKeys(db, keys, now), own_keys, upstreams, now),
        reports_api.router(
            Reports(db, tenants, now),
            Exports(db),
            Requests(db, catalog),
            Repricing(db, catalog, ledger),
        ),
        providers_api.router(
            providers, fallbacks, catalog, upstreams, breakers, tenants, now, settings.host_name
        ),
        egress_api.router(egress),
    ):
        secret = Depends(service.require_secret(settings.service_secret))
        app.include_router(router, dependencies=[secret], responses=problems.RESPONSES)
    changes = _changes(db, keys, listeners, tenants, providers, fallbacks, own_keys)
    work = jobs.periodic(db, keys, ledger, telemetry, marks, reloading)
    return Meter(
        settings=settings,
        db=db,
        keys=keys,
        tenants=tenants,
        providers=providers,
        fallbacks=fallbacks,
        own_keys=own_keys,
        changes=changes,
        detection=detection,
        upstreams=upstreams,
        ledger=ledger,
        calls=calls,
        egress=egress,
        listeners=listeners,
        programs=Programs(door.answer, settings.programs_listen, shared),
        marks=marks,
        reloading=reloading,
        metrics=metrics,
        tracing=tracing,
        jobs=Jobs(db, models.job_lease, metrics, work),
        app=app,
    )


def _changes(
    db: Database,
    keys: Keys,
    listeners: Listeners,
    tenants: Tenants,
    providers: Providers,
    fallbacks: Fallbacks,
    own_keys: OwnKeys,
) -> Changes:
    """What is kept in memory, and how it follows what other processes write."""

    async def of_tenants(subjects: Collection[str] | None) -> None:
        await (tenants.load() if subjects is None else tenants.refresh(subjects))

    async def of_keys(subjects: Collection[str] | None) -> None:
        opened = listeners.opened
        if subjects is None:
            subjects = {key.tenant for key in await keys.load()} | listeners.tenants
        for tenant, generations in (await keys.refresh(subjects)).items():
            await listeners.keep(tenant, generations, opened)

    async def of_providers(_: Collection[str] | None) -> None:
        await providers.load()
        await fallbacks.load()

    async def of_own_keys(subjects: Collection[str] | None) -> None:
        await (own_keys.load() if subjects is None else own_keys.refresh(subjects))

    changes = Changes(db)
    changes.watch("tenant", of_tenants)
    changes.watch("key", of_keys)
    changes.watch("provider", of_providers)
    changes.watch("own_key", of_own_keys)
    return changes
