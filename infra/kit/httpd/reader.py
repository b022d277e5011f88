"""Bytes to requests. Nothing of tasks or time here; what is wrong is raised as Refusal."""

from collections.abc import Callable
from typing import Protocol

import httptools

from infra.kit.http1.heads import Malformed
from infra.kit.http1.inflow import NOTHING, Inflow, Valve
from infra.kit.httpd.guard import (
    checked_authority,
    checked_framing,
    checked_target,
    header_name,
)
from infra.kit.httpd.refusals import Refusal
from infra.kit.httpd.request import Request, Wire

# In one read of the socket, beyond the one that is served.
_MOST_PIPELINED = 16


class ReaderWire(Wire, Valve, Protocol):
    """The connection, to requests and to their bodies."""


class Reader:
    """The parser of one connection: hands on each request at its head, feeds its body afterwards.

    What follows the head of a CONNECT is no HTTP, whatever becomes of it: it is fed as it comes.
    """

    __slots__ = (
        "_arrived",
        "_began",
        "_burst",
        "_headers",
        "_parser",
        "_silent_bytes",
        "_target",
        "_tunnel",
        "_tunnels",
        "_wire",
        "in_head",
        "incoming",
    )

    def __init__(
        self,
        wire: ReaderWire,
        *,
        began: Callable[[], None],
        arrived: Callable[[Request], None],
        tunnels: bool = False,
    ) -> None:
        self._wire, self._began, self._arrived = wire, began, arrived
        self._tunnels = tunnels
        self._tunnel: Inflow | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._headers: list[tuple[str, str]] = []
        self._target = b""
        self._silent_bytes = self._burst = 0
        self.in_head = False
        self.incoming: Request | None = None

    @property
    def asks_for_head(self) -> bool:
        """Whether the request that came last is a HEAD."""
        return bool(self._parser.get_method() == b"HEAD")

    def feed(self, data: bytes) -> None:
        """Parses what arrived. Raises Refusal; nothing may be fed after that."""
        if self._tunnel is not None:
            self._tunnel.feed(data)
            return
        self._burst = 0
        self._silent_bytes += len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError as error:
            raise Refusal.of(error) from error
        # Grows while no part of a body comes: heads, trailers and chunk extensions are all bounded.
        if self._silent_bytes > self._wire.limits.head_bytes and self._tunnel is None:
            raise Refusal.head_too_long()

    def eof(self) -> bool:
        """The client sends no more. Whether it may still be waiting for an answer: in a tunnel, it may."""
        if self._tunnel is not None:
            self._tunnel.end()
        return self._tunnel is not None

    def _parse(self, data: bytes) -> None:
        while data:
            try:
                self._parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]
                if self._tunnel is not None:
                    if data:
                        self._tunnel.feed(data)
                    return
                # No upgrade is offered, so the header means nothing and the next request follows.

    # -- told by the parser -----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._burst += 1
        if self._burst > _MOST_PIPELINED:
            raise Refusal.too_many()
        self._headers, self._target = [], b""
        self.in_head = True
        self._began()

    def on_url(self, raw: bytes) -> None:
        self._target += raw

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.in_head:
            return  # a trailer: nobody asked for it
        if len(self._headers) >= self._wire.limits.headers:
            raise Refusal.head_too_long()
        known = header_name(name)
        if known is not None:
            self._headers.append((known, value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        parser, headers = self._parser, self._headers
        most = self._wire.limits.head_bytes
        if self._silent_bytes > most and len(self._target) + _size(headers) > most:
            raise Refusal.head_too_long()
        version = parser.get_http_version()
        if version not in ("1.1", "1.0"):
            raise Malformed("its version is neither HTTP/1.1 nor HTTP/1.0")
        method = str(parser.get_method(), "ascii")
        connect = method == "CONNECT"
        if connect and not self._tunnels:
            raise Refusal.not_implemented()
        target = checked_authority(self._target) if connect else checked_target(self._target)
        length = checked_framing(headers, chunks=version == "1.1")
        if length and parser.should_upgrade():
            raise Malformed("it asks for an upgrade or a tunnel, and has a body")
        self.in_head = False
        self._silent_bytes = 0
        self.incoming = Request(
            self._wire,
            Inflow(self._wire) if length or connect else NOTHING,
            method,
            target,
            version,
            headers,
            length,
            # Only here: after the message's end llhttp has forgotten what the head said.
            keep_alive=version == "1.1" and parser.should_keep_alive() and not connect,
        )
        if connect:
            self._tunnel = self.incoming.inflow
        self._arrived(self.incoming)

    def on_body(self, data: bytes) -> None:
        assert self.incoming is not None
        self._silent_bytes = 0
        self.incoming.inflow.feed(data)

    def on_message_complete(self) -> None:
        assert self.incoming is not None
        self._silent_bytes = 0
        if self._tunnel is None:
            self.incoming.inflow.end()
            self.incoming = None


def _size(headers: list[tuple[str, str]]) -> int:
    return sum(len(name) + len(value) + len(": \r\n") for name, value in headers)
