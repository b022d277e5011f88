"""Pools of connections to agents: one per tenant and generation, never shared between them."""

from dataclasses import dataclass

from gateway.limits import Limits
from infra.kit import ids
from infra.kit.clock import Clock
from infra.kit.relay import ProtocolUpstream, Timeouts
from spawner.wire import Instance

_IDLE_S = 300.0


@dataclass(slots=True)
class _Pool:
    upstream: ProtocolUpstream
    used_s: float


class Upstreams:
    """Opens pools when they are needed and closes them when nobody has used them for a while."""

    def __init__(
        self, deployment_secret: str, agent_uid: int, limits: Limits, clock: Clock
    ) -> None:
        self._secret, self._agent_uid = deployment_secret, agent_uid
        self._limits, self._clock = limits, clock
        self._pools: dict[tuple[str, int, str], _Pool] = {}

    def of(self, instance: Instance) -> ProtocolUpstream:
        """The pool of this instance. The socket is trusted only if its owner is the agent's uid."""
        assert instance.url is not None
        key = (instance.tenant, instance.generation, instance.url)
        pool = self._pools.get(key)
        if pool is None:
            uid = self._agent_uid if instance.owner_uid is None else instance.owner_uid
            upstream = ProtocolUpstream(
                instance.url,
                owner_uid=uid,
                timeouts=Timeouts(
                    connect_s=2,
                    first_byte_s=self._limits.relay_first_byte_s,
                    idle_s=3 * self._limits.stream_heartbeat_s,
                ),
                limit=2 * self._limits.relay_in_flight + self._limits.streams_per_tenant,
            )
            pool = self._pools[key] = _Pool(upstream, 0)
        pool.used_s = self._clock.monotonic_s()
        return pool.upstream

    def secret(self, instance: Instance) -> str:
        """What we show to this generation of the tenant's agent."""
        return ids.instance_secret(self._secret, instance.tenant, instance.generation)

    async def sweep(self) -> None:
        """Closes pools that were not used for five minutes; a stream holds its own past that."""
        longest_s = max(_IDLE_S, 2 * self._limits.stream_s)
        now_s = self._clock.monotonic_s()
        for key, pool in list(self._pools.items()):
            if now_s - pool.used_s > longest_s:
                del self._pools[key]
                await pool.upstream.close()

    async def close(self) -> None:
        """Closes every pool."""
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            await pool.upstream.close()
