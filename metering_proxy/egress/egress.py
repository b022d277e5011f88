"""The ways out as the rest of the meter sees them: which requests are theirs, and who answers them."""

from prometheus_client import CollectorRegistry
from sqlalchemy import select

from infra.kit.clock import Clock
from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from infra.kit.seal import Sealer
from metering_proxy import wire
from metering_proxy.egress.budget import Budget
from metering_proxy.egress.connections import Connections
from metering_proxy.egress.forwarding import PREFIX, Forwarding
from metering_proxy.egress.metrics import EgressMetrics
from metering_proxy.egress.outside import Outside
from metering_proxy.egress.providers import hosts
from metering_proxy.egress.record import Refusals
from metering_proxy.egress.tables import egress_day
from metering_proxy.egress.tunnels import Tunnels
from metering_proxy.egress.ways import Ways
from metering_proxy.providers.providers import Providers
from metering_proxy.tenant_side.exchange import Exchange
from metering_proxy.tenants import Tenants

_DAYS = 14


class Egress:
    """Tunnels, and calls to connections."""

    def __init__(
        self,
        db: Database,
        tenants: Tenants,
        sealer: Sealer,
        providers: Providers,
        registry: CollectorRegistry,
        clock: Clock,
        outside: Outside | None = None,
    ) -> None:
        self._db, self._tenants, self._clock = db, tenants, clock
        self._outside = outside or Outside()
        self.connections = Connections(db, sealer, clock)
        metrics = EgressMetrics(registry)
        self._ways = Ways(tenants, Budget(db), clock)
        self._tunnels = Tunnels(self._ways, self._outside, lambda: hosts(providers), metrics)
        self._refusals = Refusals(clock)
        self._forwarding = Forwarding(self._ways, self.connections, self._outside, metrics)

    @property
    def open(self) -> int:
        """Tunnels and calls that are under way here."""
        return self._ways.open

    def takes(self, exchange: Exchange) -> bool:
        """Whether a request is for a way out."""
        return exchange.method == "CONNECT" or exchange.path.startswith(PREFIX)

    async def answer(self, exchange: Exchange, tenant: str, secret: str, call_id: str) -> None:
        """Answers it. `secret`: the key that it showed. Raises as `Tunnels.open` and `Forwarding.answer`."""
        try:
            if exchange.method == "CONNECT":
                await self._tunnels.open(exchange, tenant, call_id)
            else:
                await self._forwarding.answer(exchange, tenant, secret, call_id)
        except AlcoveError as error:
            self._refusals.note(tenant, _target(exchange), error)
            raise

    def described(self, exchange: Exchange, error: AlcoveError) -> dict[str, str]:
        """What the log says of a refused way out, beside its reason: for what, and what kind of address it was."""
        if exchange.method != "CONNECT":
            return {}
        return {"target": exchange.target, "kind": str(error.details.get("kind", ""))}

    async def today(self, tenant: str) -> wire.EgressDay:
        """What the tenant has taken of its day. Bytes under way are counted ahead, a portion at a time."""
        standing = self._tenants.standing(tenant)
        start_at, resets_at = standing.spans.span("day", self._clock.now_at())
        mine = select(egress_day).where(
            egress_day.c.account == tenant, egress_day.c.start_at == start_at
        )
        async with self._db.read() as reading:
            row = await reading.row(mine) or {"bytes": 0, "tunnels": 0, "calls": 0}
        rules = standing.plan.egress
        return wire.EgressDay(
            allowed=standing.egress,
            bytes=row["bytes"],
            bytes_limit=None if rules is None else rules.bytes_day,
            tunnels=row["tunnels"],
            calls=row["calls"],
            resets_at=resets_at,
        )

    async def record(self, tenant: str) -> wire.EgressRecord:
        """What the tenant took of its last days, and what it was refused."""
        days = (
            select(*[egress_day.c[name] for name in wire.EgressUse.model_fields])
            .where(egress_day.c.account == tenant)
            .order_by(egress_day.c.start_at.desc())
            .limit(_DAYS)
        )
        async with self._db.read() as reading:
            rows = await reading.rows(days)
        return wire.EgressRecord(
            days=[wire.EgressUse(**row) for row in rows], refusals=self._refusals.of(tenant)
        )

    async def close(self) -> None:
        """Closes connections to origins, and the resolver."""
        await self._forwarding.close()
        self._outside.close()


def _target(exchange: Exchange) -> str:
    """Where it wanted to go: host and port, or the connection. What is behind those is nobody's business."""
    if exchange.method == "CONNECT":
        return exchange.target
    connection = exchange.path.removeprefix(PREFIX).partition("/")[0]
    return f"{PREFIX}{connection}"
