"""A listening socket and its connections; listeners come and go while the process runs."""

import asyncio
import socket

from infra.kit import unix
from infra.kit.httpd.connection import Connection
from infra.kit.httpd.limits import Capacity, Limits
from infra.kit.httpd.owner import Handler, OpenConnection
from infra.kit.httpd.request import Request


class Listener:
    """Made by `listen`; ended by `close`."""

    def __init__(
        self, handler: Handler, connect: Handler | None, limits: Limits, capacity: Capacity
    ) -> None:
        self._handler, self._connect = handler, connect
        self.limits, self.capacity = limits, capacity
        self.closing = False
        self._server: asyncio.AbstractServer | None = None
        self._connections: set[OpenConnection] = set()
        self._unproven: set[OpenConnection] = set()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def connections(self) -> int:
        """Open connections."""
        return len(self._connections)

    @property
    def unproven(self) -> int:
        """Open connections whose caller has not proved who it is."""
        return len(self._unproven)

    async def close(self, *, grace_s: float = 5.0) -> None:
        """Accepts no more, closes idle connections, lets answers under way end for `grace_s`, then cuts them.

        Returns once every handler has ended, also the cut ones, but for those that outlive their clients.
        """
        self.closing = True
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.finish()
        try:
            async with asyncio.timeout(grace_s):
                await self._empty.wait()
        except TimeoutError:
            for connection in list(self._connections):
                connection.abort()
        await self._empty.wait()

    # -- asked by connections: see Owner ----------------------------------------------------------

    @property
    def offers_tunnels(self) -> bool:
        return self._connect is not None

    def handler_of(self, request: Request) -> Handler:
        connect = self._connect if request.method == "CONNECT" else None
        return connect or self._handler

    def enter(self, connection: OpenConnection) -> bool:
        capacity = self.capacity
        if (
            self.closing
            or len(self._unproven) >= self.limits.unproven
            or len(self._connections) >= self.limits.connections
            or capacity.connections >= capacity.most_connections
        ):
            return False
        capacity.connections += 1
        self._connections.add(connection)
        self._unproven.add(connection)
        self._empty.clear()
        return True

    def trusted(self, connection: OpenConnection) -> None:
        self._unproven.discard(connection)

    def leave(self, connection: OpenConnection) -> None:
        if connection not in self._connections:
            return
        self.capacity.connections -= 1
        self._connections.discard(connection)
        self._unproven.discard(connection)
        if not self._connections:
            self._empty.set()

    async def _start(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()

        def made() -> Connection:
            return Connection(loop, self)

        if sock.family == socket.AF_UNIX:
            self._server = await loop.create_unix_server(made, sock=sock, backlog=unix.BACKLOG)
        else:
            self._server = await loop.create_server(made, sock=sock, backlog=unix.BACKLOG)


async def listen(
    sock: socket.socket,
    handler: Handler,
    *,
    connect: Handler | None = None,
    limits: Limits | None = None,
    capacity: Capacity | None = None,
) -> Listener:
    """Serves `handler` on a bound socket, which then belongs to the listener.

    `connect`: who answers a CONNECT, with `Request.tunnel` or a refusal; 501 where nobody does.
    `capacity`: what it shares with the process's other listeners; its own where none is given.
    """
    listener = Listener(handler, connect, limits or Limits(), capacity or Capacity())
    await listener._start(sock)
    return listener
