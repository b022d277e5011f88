"""The wiring of the meter: all its parts are made here, started in one order and stopped in the other.

`create_app` gives the control application; `Meter.running` brings the tenants' side to life beside it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import Depends, FastAPI

from infra.kit import httpd, service
from infra.kit.clock import Clock, SystemClock
from infra.kit.db import Database
from infra.kit.jobs import Job, Jobs
from infra.kit.metrics import Metrics
from infra.kit.relay import Timeouts
from infra.kit.seal import Sealer
from infra.kit.tracing import Tracing
from metering_proxy import models, plans
from metering_proxy.api import providers as providers_api
from metering_proxy.api import tenants as tenants_api
from metering_proxy.keys import Keys
from metering_proxy.ledger.ledger import Ledger
from metering_proxy.ledger.tidying import tidy
from metering_proxy.ledger.verify import verify
from metering_proxy.ledger.windows import Calendar
from metering_proxy.providers import known
from metering_proxy.providers.catalog import Catalog
from metering_proxy.providers.detection import Detection
from metering_proxy.providers.providers import Providers
from metering_proxy.providers.upstreams import Upstreams
from metering_proxy.settings import MeterSettings
from metering_proxy.telemetry import Telemetry
from metering_proxy.tenant_side.call import Calls
from metering_proxy.tenant_side.door import Door
from metering_proxy.tenant_side.listeners import Listeners
from metering_proxy.tenants import Tenants
from metering_proxy.usage import Reports

PACKAGE = "metering_proxy"
_SWEEP_EVERY_S = 10.0
_VERIFY_EVERY_S = 600.0
_TIDY_EVERY_S = 3600.0
_LIMITS = httpd.Limits(connections=256)


@dataclass(frozen=True)
class Meter:
    """The parts of one meter process."""

    settings: MeterSettings
    db: Database
    keys: Keys
    tenants: Tenants
    providers: Providers
    detection: Detection
    upstreams: Upstreams
    ledger: Ledger
    calls: Calls
    listeners: Listeners
    metrics: Metrics
    tracing: Tracing
    jobs: Jobs
    app: FastAPI

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Reads what there is, binds every live generation's socket, and serves tenants while the block runs.

        On leaving, streams get their time to end, everything settles, and the ledger is written out.
        """
        await self.tenants.load()
        await self.providers.load()
        self.ledger.start()
        await self.ledger.sweep()
        await self.listeners.open_all(await self.keys.load())
        self.jobs.start()
        try:
            yield
        finally:
            await self.listeners.shut(self.settings.stream_grace_s)
            await self.calls.close()
            await self.jobs.stop()
            await self.ledger.close()
            await self.detection.close()
            await self.upstreams.close()
            await self.db.close()
            self.tracing.close()


def create_app(
    settings: MeterSettings,
    *,
    clock: Clock | None = None,
    limits: httpd.Limits | None = None,
    capacity: httpd.Capacity | None = None,
    timeouts: Timeouts | None = None,
) -> Meter:
    """Builds a meter. `clock`: instead of the machine's and the database's; `limits` of each listener,
    `capacity` of all, `timeouts` towards providers.
    """
    metrics, tracing = Metrics("meter"), Tracing.from_environment("meter")
    telemetry = Telemetry(metrics, tracing)
    now = clock or SystemClock()
    db = Database(settings.database_url, durable=True, clock=clock)
    all_plans, all_known = plans.load(), known.load()
    keys, tenants = Keys(db, now), Tenants(db, all_plans, now)
    calendar = Calendar(all_plans.zone)
    providers = Providers(db, Sealer.from_secrets(settings.sealing_key), all_known, now)
    detection = Detection(
        all_known,
        model_url=settings.local_model_url,
        embeddings_url=settings.embeddings_url,
        loopback=settings.loopback_providers,
    )
    catalog, upstreams = Catalog(providers, detection), Upstreams(timeouts)
    ledger = Ledger(db, lease_s=settings.lease_s, clock=clock)
    calls = Calls(
        tenants=tenants,
        catalog=catalog,
        upstreams=upstreams,
        ledger=ledger,
        calendar=calendar,
        telemetry=telemetry,
        clock=now,
    )
    door = Door(keys, catalog, calls, telemetry, now)
    listeners = Listeners(
        door.answer, settings.sockets_dir, limits or _LIMITS, capacity or httpd.Capacity()
    )
    reports = Reports(db, tenants, calendar, now)
    app = FastAPI(title="Alcove meter", openapi_url=None)
    service.install(
        app, metrics=metrics, tracing=tracing, checks=[service.database_check(db, PACKAGE)]
    )
    secret = [Depends(service.require_secret(settings.service_secret))]
    app.include_router(tenants_api.router(keys, listeners, tenants, reports), dependencies=secret)
    app.include_router(
        providers_api.router(providers, catalog, upstreams, all_plans, now), dependencies=secret
    )
    jobs = Jobs(db, models.job_lease, metrics, _jobs(db, ledger, telemetry))
    return Meter(
        settings=settings,
        db=db,
        keys=keys,
        tenants=tenants,
        providers=providers,
        detection=detection,
        upstreams=upstreams,
        ledger=ledger,
        calls=calls,
        listeners=listeners,
        metrics=metrics,
        tracing=tracing,
        jobs=jobs,
        app=app,
    )


def _jobs(db: Database, ledger: Ledger, telemetry: Telemetry) -> list[Job]:
    async def sweep() -> None:
        await ledger.sweep()

    async def prove() -> None:
        verdict = await verify(db)
        telemetry.drift.set(verdict.drift_nanos)
        if not verdict.whole:
            raise RuntimeError(f"the ledger does not agree with itself: {verdict}")

    return [
        Job("sweep", _SWEEP_EVERY_S, sweep, everywhere=True),
        Job("verify", _VERIFY_EVERY_S, prove),
        Job("tidy", _TIDY_EVERY_S, lambda: tidy(db)),
    ]
