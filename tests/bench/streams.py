"""Event streams: a thousand readers in one process, run as `python -m tests.bench.streams`.

It is a process of its own so that its core can be chosen; it prints one JSON object.
"""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import orjson
import uvloop

from tests.bench.processes import pinned

# A member of its own, or within the text of a chat completion.
_WRITTEN = re.compile(rb"written_ns\W+(\d+)")


@dataclass(frozen=True, slots=True)
class Delays:
    """What the readers saw. Milliseconds from an event's writing to its reading."""

    p50_ms: float
    p99_ms: float
    lost: int
    unfinished: int


class Reader(asyncio.Protocol):
    """One stream."""

    def __init__(self, request: bytes, delays: list[int], done: asyncio.Event) -> None:
        self._request, self._delays, self._done = request, delays, done
        self.events = 0
        self._carry = b""

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        data = self._carry + data
        end = data.rfind(b"}\n\n") + 3
        if end < 3:
            self._carry = data[-200:]
            if data.endswith(b"0\r\n\r\n"):
                self._done.set()
            return
        for match in _WRITTEN.finditer(data, 0, end):
            self._delays.append(now - int(match.group(1)))
            self.events += 1
        self._carry = data[end:]
        if self._carry.endswith(b"\r\n0\r\n\r\n"):
            self._done.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._done.set()


async def read_all(url: str, count: int, events: int, most_s: float, request: bytes) -> Delays:
    """Opens `count` streams of `events` events by sending `request`, and reads them to their ends."""
    loop, where = asyncio.get_running_loop(), urlsplit(url)
    delays: list[int] = []
    readers, done = [], []
    for _ in range(count):
        finished = asyncio.Event()
        reader = Reader(request, delays, finished)
        await loop.create_connection(lambda reader=reader: reader, where.hostname, where.port)
        readers.append(reader)
        done.append(asyncio.create_task(finished.wait()))
    await asyncio.wait(done, timeout=most_s)
    for task in done:
        task.cancel()
    delays.sort()
    lost = count * events - len(delays)
    unfinished = sum(reader.events < events for reader in readers)
    return Delays(_at(delays, 0.5), _at(delays, 0.99), lost, unfinished)


def _at(ordered: list[int], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] / 1e6 if ordered else 0.0


def delays(
    url: str,
    *,
    core: int,
    count: int,
    events: int,
    headers: Mapping[str, str],
    path: str | None = None,
    body: bytes = b"",
) -> Delays:
    """Runs the readers in a process on `core`. 20 events a second and stream are expected.

    Asks `path` (that of the relay's events where it is None), with a POST where there is a `body`.
    """
    most_s = events / 20 * 2 + 10
    command = [sys.executable, "-m", "tests.bench.streams", url, str(count), str(events)]
    out = subprocess.run(
        pinned(core, [*command, str(most_s)]),
        input=_request(url, path or f"/events?{events}", headers, body),
        capture_output=True,
        timeout=most_s + 60,
    )
    if out.returncode:
        raise RuntimeError(out.stderr.decode()[-2000:])
    return Delays(**orjson.loads(out.stdout))


def _request(url: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    said = {"host": urlsplit(url).netloc, **headers}
    if body:
        said |= {"content-type": "application/json", "content-length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in said.items())
    method = "POST" if body else "GET"
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


if __name__ == "__main__":
    _, url, count, events, most_s = sys.argv
    request = sys.stdin.buffer.read()
    found = uvloop.run(read_all(url, int(count), int(events), float(most_s), request))
    sys.stdout.buffer.write(orjson.dumps(found))
