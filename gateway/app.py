"""The gateway's wiring: every part is made here, once, and handed to who needs it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from gateway import jobs, pages
from gateway.accounts.doors import Doors
from gateway.accounts.passwords import Passwords
from gateway.accounts.recovery import Recovery
from gateway.api import agent, live, pending
from gateway.background import Background
from gateway.limits import Limits
from gateway.metrics import GatewayMetrics
from gateway.pages import (
    account,
    chat,
    doors,
    errors,
    key_acts,
    keys,
    recovery,
    statics,
    storage,
    usage,
)
from gateway.pages.admin import (
    audit,
    fallbacks,
    host,
    prices,
    providers,
    requests,
    spend,
    tenant,
    tenant_acts,
    tenants,
)
from gateway.pages.environment import DIST
from gateway.pending.delivery import Delivery
from gateway.pending.store import PendingStore
from gateway.quota import Quotas
from gateway.relay.forward import Relay
from gateway.relay.instances import Instances
from gateway.relay.upstreams import Upstreams
from gateway.settings import GatewaySettings
from gateway.stream.hub import Hub
from gateway.tenants.activity import Activity
from gateway.tenants.administration import Administration
from gateway.tenants.credit import Credit
from gateway.tenants.directory import Directory
from gateway.tenants.outbox import Outbox
from gateway.web.cookies import Cookies
from gateway.web.crowding import Crowding
from gateway.web.guard import RequestGuard
from gateway.web.headers import SecurityHeaders
from gateway.web.origin import SameOrigin
from gateway.web.parts import Parts
from gateway.web.programs import Programs
from infra.kit import service
from infra.kit.clock import Clock, SystemClock
from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from infra.kit.relay import ProtocolUpstream, Timeouts
from infra.kit.seal import Sealer
from infra.kit.tracing import Tracing
from metering_proxy.client import MeterClient
from spawner.client import SpawnerClient


def create_app(
    settings: GatewaySettings,
    *,
    limits: Limits | None = None,
    clock: Clock | None = None,
    passwords: Passwords | None = None,
    tracing: Tracing | None = None,
    dist: Path = DIST,
) -> FastAPI:
    """The gateway as an ASGI app; `running(app)` starts and ends what it does by itself.

    Raises `internal` where the pages are not built.
    """
    made = build(
        settings, limits or Limits(), clock or SystemClock(), clock, passwords or Passwords(), dist
    )
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.parts = made
    for router in (agent.router, pending.router, live.router):
        app.include_router(router)
    for router in (doors.router, doors.way_out, recovery.router):
        app.include_router(router)
    mine = (account.router, storage.router, keys.router, key_acts.router)
    for router in (chat.router, usage.router, *mine):
        app.include_router(router)
    for router in (tenants.router, tenant.router, tenant_acts.router):
        app.include_router(router)
    for router in (spend.router, requests.router, prices.router):
        app.include_router(router)
    for router in (providers.router, fallbacks.router, audit.router, host.router):
        app.include_router(router)
    app.include_router(statics.router(dist))
    _guard(app, made, tracing or Tracing("gateway"))
    return app


def build(
    settings: GatewaySettings,
    limits: Limits,
    clock: Clock,
    own_clock: Clock | None,
    passwords: Passwords,
    dist: Path,
) -> Parts:
    """The parts, wired. `own_clock`: the database is told the time by it (tests), not by its server."""
    db = Database(settings.gateway_database_url, clock=own_clock)
    background, metrics = Background(), GatewayMetrics()
    meter = MeterClient(settings.meter_url, settings.service_secret)
    spawner = SpawnerClient(settings.spawner_url, settings.service_secret)
    hub = Hub(db, limits)
    instances = Instances(spawner)
    upstreams = Upstreams(settings.deployment_secret, settings.agent_uid, limits, clock)
    relay = Relay(instances, upstreams, limits, metrics)
    store = PendingStore(Sealer.from_secrets(settings.sealing_key), limits)
    outbox = Outbox(db, meter, spawner, limits, metrics)
    return Parts(
        settings=settings,
        limits=limits,
        clock=clock,
        db=db,
        metrics=metrics,
        cookies=Cookies(settings.is_https),
        pages=pages.environment(dist, clock),
        background=background,
        meter=meter,
        spawner=spawner,
        doors=Doors(db, passwords, limits, open_=settings.gateway_signup == "open"),
        recovery=Recovery(db, passwords, limits),
        hub=hub,
        quotas=Quotas(meter, clock),
        instances=instances,
        upstreams=upstreams,
        programs=_programs(settings, limits),
        relay=relay,
        pending=store,
        delivery=Delivery(db, store, instances, relay, hub, background, limits, clock, metrics),
        activity=Activity(spawner, background, limits, clock),
        outbox=outbox,
        administration=Administration(db, outbox, instances, hub),
        credit=Credit(db, meter, hub),
        directory=Directory(db, meter, spawner),
    )


@asynccontextmanager
async def running(app: FastAPI) -> AsyncIterator[None]:
    """While the block runs, the gateway does what it does by itself. Then streams end, first of all."""
    here: Parts = app.state.parts
    supervisor = jobs.all_jobs(here)
    supervisor.start()
    try:
        yield
    finally:
        here.hub.close()
        await supervisor.stop()
        await here.background.close()
        await here.upstreams.close()
        if here.programs is not None:
            await here.programs.close()
        await here.meter.close()
        await here.spawner.close()
        await here.db.close()


def control_app(app: FastAPI) -> FastAPI:
    """The second listener: `/metrics`, which the public port does not have."""
    here: Parts = app.state.parts
    control = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)

    @control.get("/metrics", include_in_schema=False)
    async def metrics(request: Request) -> Response:
        body, kind = here.metrics.render()
        return Response(body, media_type=kind)

    return control


def _programs(settings: GatewaySettings, limits: Limits) -> ProtocolUpstream | None:
    """The meter's door for people's programs, where the settings name one."""
    if settings.meter_programs_url is None:
        return None
    timeouts = Timeouts(
        connect_s=2, first_byte_s=limits.program_first_byte_s, idle_s=limits.program_idle_s
    )
    return ProtocolUpstream(
        settings.meter_programs_url, timeouts=timeouts, limit=2 * limits.program_calls
    )


def _guard(app: FastAPI, here: Parts, tracing: Tracing) -> None:
    """What stands around the routes; the last added is the outermost."""
    settings = here.settings
    app.add_middleware(SameOrigin, origins=settings.origins)
    app.add_middleware(RequestGuard, hosts=settings.hosts, limits=here.limits, crowded=Crowding())
    app.add_middleware(errors.Faults)
    app.add_middleware(
        Programs,
        upstream=here.programs,
        hosts=settings.hosts,
        limits=here.limits,
        crowded=Crowding(),
    )
    service.install(
        app,
        metrics=here.metrics,
        tracing=tracing,
        checks=[service.database_check(here.db, "gateway")],
        expose_metrics=False,
        trust_request_id=False,
    )
    app.add_exception_handler(AlcoveError, errors.coded)
    app.add_exception_handler(HTTPException, errors.http)
    app.add_exception_handler(RequestValidationError, errors.malformed)
    app.add_middleware(SecurityHeaders, is_https=settings.is_https)
