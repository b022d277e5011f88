"""The wired parts of one gateway, as the edges find them on the app. `gateway.app` makes them."""

from dataclasses import dataclass

import jinja2
from fastapi import Request

from gateway.accounts.doors import Doors
from gateway.accounts.recovery import Recovery
from gateway.background import Background
from gateway.limits import Limits
from gateway.metrics import GatewayMetrics
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
from infra.kit.clock import Clock
from infra.kit.db import Database
from infra.kit.relay import ProtocolUpstream
from metering_proxy.client import MeterClient
from spawner.client import SpawnerClient


@dataclass(frozen=True)
class Parts:
    """Everything that a route may need; made once, handed to the app."""

    settings: GatewaySettings
    limits: Limits
    clock: Clock
    db: Database
    metrics: GatewayMetrics
    cookies: Cookies
    pages: jinja2.Environment
    background: Background
    meter: MeterClient
    spawner: SpawnerClient
    doors: Doors
    recovery: Recovery
    hub: Hub
    quotas: Quotas
    instances: Instances
    upstreams: Upstreams
    programs: ProtocolUpstream | None
    relay: Relay
    pending: PendingStore
    delivery: Delivery
    activity: Activity
    outbox: Outbox
    administration: Administration
    credit: Credit
    directory: Directory


def parts(request: Request) -> Parts:
    """The parts of the gateway that serves this request."""
    found = request.app.state.parts
    assert isinstance(found, Parts)
    return found
