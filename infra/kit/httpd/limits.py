"""What strangers may take from a listener before, and after, they have proved who they are."""

from dataclasses import dataclass

from infra.kit.errors import AlcoveError


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one listener. `unproven`: connections whose caller has not proved anything yet (`Request.trust`).

    `head_s`: from a head's first byte (or the connection) to its end; `idle_s`: between requests;
    `body_s`: from the first wait for a body to its end; `write_s`: for a client that takes no bytes.
    """

    unproven: int = 64
    connections: int = 1024
    head_s: float = 10.0
    idle_s: float = 30.0
    body_s: float = 120.0
    write_s: float = 60.0
    head_bytes: int = 32 * 1024
    headers: int = 100
    body_bytes: int = 34 * 1024 * 1024


class Capacity:
    """What all listeners of a process share: open connections, and bytes of bodies held in memory."""

    __slots__ = ("body_bytes", "connections", "most_body_bytes", "most_connections")

    def __init__(self, *, connections: int = 50_000, body_bytes: int = 1 << 30) -> None:
        self.most_connections, self.most_body_bytes = connections, body_bytes
        self.connections = self.body_bytes = 0

    def take_body(self, size: int) -> None:
        """Counts `size` more bytes of bodies. Raises `unavailable` (reason `busy`) where that is too much."""
        if self.body_bytes + size > self.most_body_bytes:
            raise AlcoveError(
                "unavailable",
                "too much is being sent to us at once",
                reason="busy",
                retry_after_s=1,
            )
        self.body_bytes += size

    def give_body(self, size: int) -> None:
        """Those bytes are held no more."""
        self.body_bytes -= size
