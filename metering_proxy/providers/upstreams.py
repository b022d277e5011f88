"""Pools of connections to providers, one for each address and key; a retired pool closes after its last call."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from infra.kit.relay import ProtocolUpstream, Timeouts, Upstream
from metering_proxy.providers.connections import Connection
from metering_proxy.providers.dialling import Dialling

# Of one provider, in one process: far above what it carries, so that only a flood of calls meets it.
MOST_CONNECTIONS = 8_192


@dataclass(slots=True)
class _Pool:
    upstream: Upstream
    revision: int
    users: int = 0
    retired: bool = False


class Upstreams:
    """Where calls get their way to a provider."""

    def __init__(self, dialling: Dialling, timeouts: Timeouts | None = None) -> None:
        self._dialling, self._timeouts = dialling, timeouts
        self._pools: dict[str, _Pool] = {}

    def use(self, connection: Connection) -> "_Use":
        """The connection's pool, alive until the block ends, whatever an admin changes meanwhile."""
        return _Use(self, connection)

    async def close(self) -> None:
        """Closes every pool, and the way to them."""
        for pool in self._pools.values():
            await pool.upstream.close()
        self._pools.clear()
        self._dialling.close()

    async def pool(self, connection: Connection) -> _Pool:
        """The pool of the connection as it is now; one of an older revision closes after its last user."""
        pool = self._pools.get(connection.id)
        if pool is not None and pool.revision == connection.revision:
            return pool
        fresh = _Pool(self._upstream(connection), connection.revision)
        self._pools[connection.id] = fresh
        if pool is not None:
            pool.retired = True
            if not pool.users:
                await pool.upstream.close()
        return fresh

    def _upstream(self, connection: Connection) -> Upstream:
        url = connection.base_url
        base_path = "" if url.startswith("unix:") else urlsplit(url).path
        dial = self._dialling.dial
        return ProtocolUpstream(
            url,
            timeouts=self._timeouts,
            limit=MOST_CONNECTIONS,
            base_path=base_path,
            dial=dial,
        )


class _Use:
    """A context manager by hand: every call enters one, and a generator's costs several times as much."""

    __slots__ = ("_connection", "_pool", "_upstreams")

    def __init__(self, upstreams: Upstreams, connection: Connection) -> None:
        self._upstreams, self._connection = upstreams, connection

    async def __aenter__(self) -> Upstream:
        self._pool = await self._upstreams.pool(self._connection)
        self._pool.users += 1
        return self._pool.upstream

    async def __aexit__(self, *_: object) -> None:
        pool = self._pool
        pool.users -= 1
        if pool.retired and not pool.users:
            await pool.upstream.close()
