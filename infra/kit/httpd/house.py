"""What a connection asks of the listener that it belongs to."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from infra.kit.httpd.limits import Capacity, Limits
from infra.kit.httpd.request import Request

Handler = Callable[[Request], Awaitable[None]]


class Guest(Protocol):
    """One open connection, as its listener knows it."""

    def finish(self) -> None:
        """Ends after the answer under way, or now where there is none."""
        ...

    def abort(self) -> None:
        """Ends now."""
        ...


class House(Protocol):
    """The listener that a connection belongs to."""

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

    def enter(self, guest: Guest) -> bool:
        """Whether there is room for it."""
        ...

    def trusted(self, guest: Guest) -> None:
        """Its caller is known."""
        ...

    def leave(self, guest: Guest) -> None:
        """It is closed, and its task has ended. Without effect the second time."""
        ...
