"""An upstream that costs nearly nothing: `python -m tests.bench.fake_upstream <url> [<url>]`.

`GET /` answers 12 bytes. `GET /idle` opens an event stream and says one word. `GET /events?<n>` sends
n events, 20 a second, each with the monotonic time at which it was written.
"""

import asyncio
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import uvloop

from infra.kit import address, unix

PLAIN = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 12\r\n\r\nhello world!"
_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_PERIOD_S = 0.05


class Upstream(asyncio.Protocol):
    """Trusts what it is sent: heads come whole, bodies have no meaning."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"GET /events?"):
            self._transport.write(_STREAM)
            count = int(data[12 : data.index(b" ", 12)])
            # Streams that start together must not tick together.
            phase = (id(self) >> 4) % 997 / 997 * _PERIOD_S
            self._timer = self._loop.call_later(phase, self._tick, count)
        elif data.startswith(b"GET /idle"):
            self._transport.write(_STREAM + b"8\r\n: open\n\n\r\n")
        else:
            self._transport.write(PLAIN * data.count(b"\r\n\r\n"))

    def _tick(self, left: int) -> None:
        event = b'data: {"left":%d,"written_ns":%d}\n\n' % (left - 1, time.monotonic_ns())
        end = b"" if left > 1 else b"0\r\n\r\n"
        self._transport.write(b"%x\r\n%b\r\n%b" % (len(event), event, end))
        if left > 1:
            self._timer = self._loop.call_later(_PERIOD_S, self._tick, left - 1)

    def connection_lost(self, error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()


def sockets(urls: list[str]) -> Iterator[socket.socket]:
    """A listening socket for each address."""
    for url in urls:
        where = address.parse(url)
        if where.is_unix:
            yield unix.bind(Path(str(where.path)))
        else:
            yield socket.create_server((where.host, where.port), backlog=unix.BACKLOG)


async def main(urls: list[str]) -> None:
    """Serves until SIGTERM."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    servers = []  # uvloop closes a listener that nobody holds
    for sock in sockets(urls):
        serve = loop.create_unix_server if sock.family == socket.AF_UNIX else loop.create_server
        servers.append(await serve(Upstream, sock=sock, backlog=unix.BACKLOG))
    await stop.wait()
    for server in servers:
        server.close()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1:]))
