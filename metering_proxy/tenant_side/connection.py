"""One connection at a tenant's socket: uvicorn's HTTP parser with the limits that hold before a key is shown.

Limits (ARCHITECTURE, decision 1): so many connections a listener, so long to a whole header, so long idle, and
nothing new at 80 % of the file limit. The kernel gives the lowest free descriptor, so a high one means many.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from metering_proxy.telemetry import Telemetry

HEADER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one listener."""

    connections: int = 64
    header_s: float = 10.0
    idle_s: int = 30
    descriptors: int = 52_428


@dataclass(slots=True)
class Listener:
    """What the connections of one tenant's socket share."""

    tenant: str
    generation: int
    limits: Limits
    telemetry: Telemetry
    state: ServerState = field(default_factory=ServerState)

    def refuses(self, descriptor: int) -> str | None:
        """Why a new connection is turned away, or None."""
        if descriptor >= self.limits.descriptors:
            return "descriptors"
        if len(self.state.connections) > self.limits.connections:
            return "connections"
        return None


class TenantConnection(HttpToolsProtocol):
    """See the module. `listener` is what the door reads from the request's scope."""

    def __init__(self, config: Config, listener: Listener) -> None:
        super().__init__(config, listener.state, {})
        self.listener = listener
        self._timer: asyncio.TimerHandle | None = None
        self._header_bytes = 0
        self._in_header = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Takes the connection, or turns it away before a byte is read."""
        super().connection_made(transport)
        sock = transport.get_extra_info("socket")
        reason = self.listener.refuses(sock.fileno() if sock is not None else 0)
        if reason is not None:
            self.listener.telemetry.turned_away.labels(reason).inc()
            self._close(b"503 Service Unavailable")
            return
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the connection."""
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Reads, as long as the header stays within its bounds."""
        if self.transport.is_closing():
            return
        self._header_bytes += len(data)
        super().data_received(data)
        if self._in_header and self._header_bytes > HEADER_BYTES:
            self.listener.telemetry.turned_away.labels("header_bytes").inc()
            self._close(b"431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        """A request begins: from here its header has so long to be whole."""
        super().on_message_begin()
        self.scope["alcove"] = self  # type: ignore[typeddict-unknown-key]
        self._in_header, self._header_bytes = True, 0
        if self._timer is None:
            self._arm()

    def on_headers_complete(self) -> None:
        """Its header is whole."""
        self._in_header = False
        self._disarm()
        super().on_headers_complete()

    @property
    def gone(self) -> bool:
        """Whether the caller has left."""
        return self.transport.is_closing() or bool(self.cycle and self.cycle.disconnected)

    def abort(self) -> None:
        """Cuts the connection, so that the caller sees that an answer is not whole."""
        self.transport.abort()

    def _arm(self) -> None:
        self._timer = self.loop.call_later(self.listener.limits.header_s, self._too_slow)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        self.listener.telemetry.turned_away.labels("header_time").inc()
        self._close(b"408 Request Timeout")

    def _close(self, status: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(
                b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
            self.transport.close()


def configuration(app: Any, limits: Limits) -> Config:
    """uvicorn's configuration, one for all listeners."""
    config = Config(
        app,
        log_config=None,
        access_log=False,
        http="httptools",
        loop="none",
        ws="none",
        lifespan="off",
        interface="asgi3",
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=limits.idle_s,
    )
    config.load()
    return config
