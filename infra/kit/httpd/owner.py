"""What a connection asks of the listener that it belongs to."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from infra.kit.httpd.limits import Capacity, Limits
from infra.kit.httpd.request import Request

Handler = Callable[[Request], Awaitable[None]]


class OpenConnection(Protocol):
    """One open connection, as its listener knows it."""

    def finish(self) -> None:
        """Ends after the answer under way, or now where there is none."""
        ...

    def abort(self) -> None:
        """Ends now."""
        ...


class Owner(Protocol):
    """The listener, as its connections know it."""

    limits: Limits
    capacity: Capacity
    closing: bool

    @property
    def offers_tunnels(self) -> bool:
        """Whether a CONNECT is let in."""
        ...

    def handler_of(self, request: Request) -> Handler:
        """Who answers it."""
        ...

    def enter(self, connection: OpenConnection) -> bool:
        """Counts it as open, where there is room. False: there is none, and it must close."""
        ...

    def trusted(self, connection: OpenConnection) -> None:
        """Its caller has proved who it is: it counts no longer among the unproven."""
        ...

    def leave(self, connection: OpenConnection) -> None:
        """It is closed, and its task has ended. Without effect the second time."""
        ...
