"""Fifty messages that must mean the same however their bytes are cut, and connections without sockets."""

import itertools
from collections.abc import Iterator

from infra.kit.relay import Timeouts
from infra.kit.relay.connection import Connection

_HEADS = (
    b"content-type: application/json\r\n",
    b"",
    b"Set-Cookie: a=b; Path=/\r\nset-cookie: c=\xfc\r\n",
    b"x-empty:\r\nx-space: \t a  b \t\r\nX-LONG: " + b"y" * 300 + b"\r\n",
    b"connection: keep-alive\r\nkeep-alive: timeout=5\r\n",
)
_SSE = b'event: x\ndata: {"a": "\xc3\xbc"}\n\n'
_BODIES = (
    b"content-length: 0\r\n\r\n",
    b"content-length: 5\r\n\r\nhello",
    b"content-length: 24\r\n\r\nHTTP/1.1 200 OK\r\nx: y\r\n\r\n",
    b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n\n\r\n0\r\n\r\n",
    b"transfer-encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nt: u\r\n\r\n",
    b"Transfer-Encoding: Chunked\r\n\r\n%X\r\n%b\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n" % (len(_SSE), _SSE),
)


def answers() -> Iterator[bytes]:
    """Whole answers of an upstream."""
    for head, body in itertools.product(_HEADS, _BODIES):
        yield b"HTTP/1.1 200 OK\r\n" + head + body
    for head in _HEADS:
        yield (
            b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 429 Slow\r\n" + head + _BODIES[1]
        )
        yield b"HTTP/1.1 200 OK\r\nconnection: close\r\n" + _BODIES[1]
        yield b"HTTP/1.0 404 \r\n" + head + _BODIES[1]


def requests() -> Iterator[bytes]:
    """Whole requests of a client."""
    for head, body in itertools.product(_HEADS, _BODIES):
        yield b"POST /a%2Fb?c=d HTTP/1.1\r\nHost: h:80\r\n" + head + body
    for head in _HEADS:
        yield b"GET / HTTP/1.1\r\n" + head + b"host: [::1]:80\r\n\r\n"
        yield b"DELETE /x HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\n" + head + _BODIES[1]
        yield b"HEAD /" + b"x" * 200 + b" HTTP/1.0\r\nhost: h\r\n" + head + b"\r\n"


class Still:
    """A transport that goes nowhere and remembers whether it was closed."""

    def __init__(self) -> None:
        self.closing = False

    def write(self, data: bytes) -> None:
        """Takes it."""

    def is_closing(self) -> bool:
        """Whether it was aborted."""
        return self.closing

    def get_write_buffer_size(self) -> int:
        """Nothing waits."""
        return 0

    def pause_reading(self) -> None:
        """Without effect."""

    def resume_reading(self) -> None:
        """Without effect."""

    def abort(self) -> None:
        """Remembers it."""
        self.closing = True


class Nowhere:
    """A pool that keeps nothing."""

    def give(self, connection: Connection, *, ended: bool) -> None:
        """Without effect."""

    def lost(self, connection: Connection) -> None:
        """Without effect."""


def cuts(data: bytes, at: list[int]) -> list[bytes]:
    """`data` in pieces."""
    edges = [0, *sorted(at), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges) if a != b]


TIMEOUTS = Timeouts()
