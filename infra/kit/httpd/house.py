"""What a connection asks of the listener that it belongs to."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from infra.kit.httpd.limits import Capacity, Limits
from infra.kit.httpd.request import Request

if TYPE_CHECKING:
    from infra.kit.httpd.connection import Connection

Handler = Callable[[Request], Awaitable[None]]


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

    def enter(self, connection: "Connection") -> bool:
        """Whether there is room for it."""
        ...

    def trusted(self, connection: "Connection") -> None:
        """Its caller is known."""
        ...

    def leave(self, connection: "Connection") -> None:
        """It is closed, and its task has ended. Without effect the second time."""
        ...
