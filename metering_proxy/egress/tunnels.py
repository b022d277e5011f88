"""CONNECT: anonymous bytes between a tenant and a public host."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection

from infra.kit.duplex import Direction, Duplex, Streams, join
from metering_proxy.egress import names
from metering_proxy.egress.budget import Allowance
from metering_proxy.egress.metrics import EgressMetrics
from metering_proxy.egress.outside import Outside
from metering_proxy.egress.ways import Ways
from metering_proxy.tenant_side.exchange import Exchange

_log = logging.getLogger(__name__)
IDLE_S = 120.0


class Tunnels:
    """Opens tunnels. `providers`: hosts of model providers, which are never reached this way."""

    def __init__(
        self,
        ways: Ways,
        outside: Outside,
        providers: Callable[[], Collection[str]],
        metrics: EgressMetrics,
        *,
        idle_s: float = IDLE_S,
    ) -> None:
        self._ways, self._outside, self._providers = ways, outside, providers
        self._metrics, self._idle_s = metrics, idle_s

    async def open(self, exchange: Exchange, tenant: str, call_id: str) -> None:
        """Answers a CONNECT, and returns once its tunnel is over.

        Raises what `Ways.admit`, `names.check`, `Ways.enter` and `Outside.dial` raise, before the answer; a budget
        that ends under way, or a permission that is taken back, cuts both connections.
        """
        standing, rules = self._ways.admit(tenant, anonymous=True)
        target = names.parse(exchange.path)
        names.check(target, rules, self._providers())
        async with self._ways.enter(tenant, standing, rules, "tunnels") as allowance:
            sock = await self._outside.dial(target.host, target.port)
            far = Streams(*await asyncio.open_connection(sock=sock))
            near = exchange.tunnel([("x-alcove-request-id", call_id)])
            await self._join(near, far, allowance, tenant, target.port)

    async def _join(
        self, near: Duplex, far: Duplex, allowance: Allowance, tenant: str, port: int
    ) -> None:
        began_s = time.perf_counter()
        passed: dict[Direction, int] = {"up": 0, "down": 0}

        async def passing(direction: Direction, size: int) -> None:
            self._ways.admit(tenant, anonymous=True)  # or it is cut at the next byte
            await allowance.spend(size)
            passed[direction] += size

        ending = "cut"
        try:
            ending = await join(near, far, idle_s=self._idle_s, passing=passing)
        finally:
            up, down = passed["up"], passed["down"]
            self._metrics.ended("tunnel", ending, up, down)
            told = {"ending": ending, "port": port, "up_bytes": up, "down_bytes": down}
            seconds = round(time.perf_counter() - began_s, 3)
            _log.info("tunnel", extra={**told, "s": seconds})
