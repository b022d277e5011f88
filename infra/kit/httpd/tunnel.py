"""The client's end of an accepted CONNECT: raw bytes both ways. Who is at the other end is not known here."""

from collections.abc import Callable
from typing import Protocol

from infra.kit.http1.inflow import Inflow


class TunnelWire(Protocol):
    """The connection under a tunnel."""

    full: bool

    def send(self, data: bytes) -> None:
        """Sends bytes to the client."""
        ...

    async def drained(self) -> None:
        """Returns once the client has taken most of what is queued; asked only while `full`."""
        ...

    def half_close(self) -> None:
        """Sends nothing more, but goes on reading."""
        ...


class Tunnel:
    """One end to pass bytes through: see `infra.kit.duplex.Duplex`, which says what each method promises."""

    __slots__ = ("_abort", "_inflow", "_wire")

    def __init__(self, wire: TunnelWire, inflow: Inflow, abort: Callable[[], None]) -> None:
        self._wire, self._inflow, self._abort = wire, inflow, abort

    async def read(self) -> bytes:
        """What the client sent since, as soon as it sent anything; empty once it has ended its half."""
        return await self._inflow.read()

    async def write(self, data: bytes) -> None:
        """Sends `data`; waits while the client is slower than we are, at most `Limits.write_s`."""
        self._wire.send(data)
        if self._wire.full:
            await self._wire.drained()

    async def end(self) -> None:
        """Ends our half; what is queued still leaves, within `Limits.write_s` of the tunnel's end."""
        self._wire.half_close()

    def abort(self) -> None:
        """Breaks the connection."""
        self._abort()
