"""Pools of connections to providers, one for each address and key; a retired pool closes after its last call."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from infra.kit.relay import ProtocolUpstream, Timeouts, Upstream
from metering_proxy.providers.connections import Connection


@dataclass(slots=True)
class _Pool:
    upstream: Upstream
    revision: int
    users: int = 0
    retired: bool = False


class Upstreams:
    """Where calls get their way to a provider."""

    def __init__(self, timeouts: Timeouts | None = None) -> None:
        self._timeouts = timeouts
        self._pools: dict[str, _Pool] = {}

    @asynccontextmanager
    async def use(self, connection: Connection) -> AsyncIterator[Upstream]:
        """The connection's pool, alive until the block ends, whatever an admin changes meanwhile."""
        pool = await self._pool(connection)
        pool.users += 1
        try:
            yield pool.upstream
        finally:
            pool.users -= 1
            if pool.retired and not pool.users:
                await pool.upstream.close()

    async def close(self) -> None:
        """Closes every pool."""
        for pool in self._pools.values():
            await pool.upstream.close()
        self._pools.clear()

    async def _pool(self, connection: Connection) -> _Pool:
        pool = self._pools.get(connection.id)
        if pool is not None and pool.revision == connection.revision:
            return pool
        fresh = _Pool(_upstream(connection, self._timeouts), connection.revision)
        self._pools[connection.id] = fresh
        if pool is not None:
            pool.retired = True
            if not pool.users:
                await pool.upstream.close()
        return fresh


def _upstream(connection: Connection, timeouts: Timeouts | None) -> Upstream:
    url = connection.base_url
    base_path = "" if url.startswith("unix:") else urlsplit(url).path
    return ProtocolUpstream(url, timeouts=timeouts, base_path=base_path)
