"""The door of people's programs: one socket for all tenants, at which the key says whose call it is.

The gateway brings calls here from its public port (docs/contracts.md). No container is given this socket.
"""

import socket

from infra.kit import address, httpd, unix
from metering_proxy.tenant_side.exchange import EVERYBODY, Exchange
from metering_proxy.tenant_side.listeners import Answer

# The gateway's connections are all of one neighbour, and each proves itself with its first request.
LIMITS = httpd.Limits(unproven=512, connections=2048)


class Programs:
    """The listener, where the settings name one."""

    def __init__(self, answer: Answer, url: str | None, capacity: httpd.Capacity) -> None:
        self._answer, self._url, self._capacity = answer, url, capacity
        self._listener: httpd.Listener | None = None

    @property
    def callers(self) -> int:
        """Connections that are open."""
        return 0 if self._listener is None else self._listener.connections

    async def open(self) -> None:
        """Binds the socket; none without a URL."""
        if self._url is not None:
            self._listener = await httpd.listen(
                _bound(self._url), self._handle, limits=LIMITS, capacity=self._capacity
            )

    async def shut(self, grace_s: float) -> None:
        """Takes no new connections, and up to `grace_s` for answers under way."""
        if self._listener is not None:
            await self._listener.close(grace_s=grace_s)

    async def _handle(self, request: httpd.Request) -> None:
        await self._answer(Exchange(request, EVERYBODY, 0))


def _bound(url: str) -> socket.socket:
    where = address.parse(url)
    if where.path is not None:
        return unix.bind(where.path)
    sock = socket.create_server((where.host or "127.0.0.1", where.port or 0))
    sock.setblocking(False)
    return sock
