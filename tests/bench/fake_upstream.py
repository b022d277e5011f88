"""An upstream that costs nearly nothing: `python -m tests.bench.fake_upstream <url> [<url>]`.

`GET /` answers 12 bytes. `GET /idle` opens an event stream and says one word. `GET /events?<n>` sends
n events, 20 a second, each with the monotonic time at which it was written. Every POST is an OpenAI chat
completion: `openai_answers` has what it says.
"""

import asyncio
import re
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import uvloop

from infra.kit import address, unix
from tests.bench import openai_answers

PLAIN = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 12\r\n\r\nhello world!"
_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_PERIOD_S = 0.05
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Upstream(asyncio.Protocol):
    """Trusts what it is sent: one request at a time, heads without a body come whole."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.Handle | None = None
        self._held = b""

    def data_received(self, data: bytes) -> None:
        if self._held or data.startswith(b"POST "):
            self._post(self._held + data)
        elif data.startswith(b"GET /events?"):
            count = int(data[12 : data.index(b" ", 12)])
            self._begin_ticking(count, b'{"left":%d,"written_ns":%d}', b"")
        elif data.startswith(b"GET /idle"):
            self._transport.write(_STREAM + b"8\r\n: open\n\n\r\n")
        else:
            self._transport.write(PLAIN * data.count(b"\r\n\r\n"))

    def _post(self, data: bytes) -> None:
        """Answers once the whole request is there."""
        self._held = data
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return
        length = _LENGTH.search(data, 0, end)
        if len(data) < end + 4 + int(length.group(1) if length else 0):
            return
        self._held = b""
        asked = openai_answers.Asked.read(data[end + 4 :])
        if not asked.stream:
            self._transport.write(openai_answers.WHOLE)
        elif asked.slow_events:
            self._begin_ticking(
                asked.slow_events, openai_answers.TIMED_CHUNK, openai_answers.LAST_EVENTS
            )
        else:
            self._transport.write(_STREAM)
            self._next_chunk(0)

    def _next_chunk(self, n: int) -> None:
        """Each event is a write of its own, as a provider's are."""
        if n < len(openai_answers.STREAM):
            self._transport.write(openai_answers.STREAM[n])
            self._handle = self._loop.call_soon(self._next_chunk, n + 1)

    def _begin_ticking(self, count: int, form: bytes, last: bytes) -> None:
        self._transport.write(_STREAM)
        # Streams that start together must not tick together.
        phase = (id(self) >> 4) % 997 / 997 * _PERIOD_S
        self._handle = self._loop.call_later(phase, self._tick, count, form, last)

    def _tick(self, left: int, form: bytes, last: bytes) -> None:
        event = b"data: %b\n\n" % (form % (left - 1, time.monotonic_ns()))
        if left > 1:
            self._transport.write(openai_answers.chunked(event))
            self._handle = self._loop.call_later(_PERIOD_S, self._tick, left - 1, form, last)
        else:
            end = openai_answers.chunked(last) if last else b""
            self._transport.write(openai_answers.chunked(event) + end + b"0\r\n\r\n")

    def connection_lost(self, error: Exception | None) -> None:
        if self._handle is not None:
            self._handle.cancel()


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
