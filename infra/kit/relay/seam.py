"""The seam itself: what is asked, what is answered, and which headers may cross. No input or output here."""

from collections.abc import AsyncIterator, Sequence
from functools import lru_cache
from typing import Protocol

from infra.kit.http1.inflow import Sink
from infra.kit.value import value

Headers = Sequence[tuple[str, str]]

# RFC 9110, 7.6.1: these concern one connection and are never forwarded.
HOP_BY_HOP = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)


@value
class RelayRequest:
    """What is sent. `target` is the raw path with its query, forwarded byte for byte.

    `replayable`: whether it may be sent a second time when a kept connection proves dead before a
    byte of the answer came; None means only where the method is GET or HEAD.
    """

    method: str
    target: str
    headers: Headers
    body: bytes = b""
    replayable: bool | None = None


@value
class Timeouts:
    """Seconds: to connect, to the first byte of the answer, and of silence between bytes."""

    connect_s: float = 5.0
    first_byte_s: float = 300.0
    idle_s: float = 120.0


class RelayResponse(Protocol):
    """An answer whose body is still on its way."""

    status: int
    headers: Headers

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises `timeout` after `idle_s` of silence, `bad_gateway` when cut."""
        ...

    async def push(self, sink: Sink) -> bool:
        """Hands `sink` each part of the body as it arrives, until it answers False: then False, else True at the
        end. What is not taken yet comes with the next call. Raises as `chunks`, and what `sink` raises."""
        ...

    async def close(self) -> None:
        """Lets the connection go: back to its pool when the body was read to its end, else closed."""
        ...


class Upstream(Protocol):
    """Somewhere that answers requests."""

    async def open(self, request: RelayRequest) -> RelayResponse:
        """Sends `request`; returns at the answer's headers.

        Raises `unavailable` (reason `unreachable`: nothing was sent), `timeout`, `bad_gateway`.
        """
        ...

    async def close(self) -> None:
        """Closes every connection."""
        ...


@lru_cache(512)
def _is_hop(name: str) -> bool:
    return name.lower() in HOP_BY_HOP


def end_to_end(headers: Headers) -> list[tuple[str, str]]:
    """The headers that may be forwarded: without hop-by-hop ones and those that Connection names."""
    kept = [item for item in headers if not _is_hop(item[0])]
    if len(kept) == len(headers):
        return kept
    named = {
        name.strip().lower()
        for key, value in headers
        if key.lower() == "connection"
        for name in value.split(",")
    }
    return [item for item in kept if item[0].lower() not in named] if named else kept
