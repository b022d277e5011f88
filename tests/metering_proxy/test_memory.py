"""A meter's memory after many calls is what it was after the first of them, and bounded while callers do not read.

A tenth of the callers leave in mid-stream, a tenth are refused, the rest read plain answers and streams in turns.
`make soak`: 100,000 calls, some minutes.
"""

import asyncio
import contextlib
import io
import json
import socket
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from infra.kit import client as kit_client
from infra.kit import unix
from infra.kit.db import Database
from metering_proxy import wire
from metering_proxy.ledger.verify import verify
from tests import scripted as s
from tests.databases import to_head
from tests.metering_proxy.house import MODEL, ROW
from tests.metering_proxy.test_crowd import LoosePlace, a_socket
from tests.metering_proxy.test_survival import held
from tests.scripted import ScriptedProvider
from tests.waiting import stretch, until

_CALLERS, _WARM_UP, _ROUNDS = 12, 4_000, 10
_MOST_GROWTH = 1.05
_URL = "http://localhost/v1/chat/completions"
_SAID = [{"role": "user", "content": "hello " * 200}]


@dataclass
class Load:
    """One tenant's calls at the meter, and what became of them."""

    session: aiohttp.ClientSession
    key: str
    scripted: ScriptedProvider
    outcomes: Counter[str] = field(default_factory=Counter)

    async def calls(self, count: int) -> None:
        """So many, some of them at once."""
        numbers = iter(range(count))

        async def caller() -> None:
            for number in numbers:
                self.outcomes[await self._call(number % 10)] += 1
                self.scripted.requests.clear()

        await asyncio.gather(*(caller() for _ in range(_CALLERS)))

    async def _call(self, kind: int) -> str:
        body = {
            "model": "nobody/nothing" if kind == 0 else MODEL,
            "messages": _SAID,
            "stream": bool(kind % 2),
        }
        shown = {"authorization": f"Bearer {self.key}"}
        async with self.session.post(_URL, json=body, headers=shown) as response:
            if kind == 1:
                await response.content.readany()
                response.close()
                return "left"
            await response.read()
            return str(response.status)


def _resident_kib(pid: int) -> int:
    """The memory of a process that lies in RAM."""
    status = Path(f"/proc/{pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1])


@pytest.mark.parametrize(
    "calls",
    [
        pytest.param(4_000, marks=pytest.mark.slow),
        pytest.param(100_000, marks=[pytest.mark.soak, pytest.mark.timeout(1200)]),
    ],
)
async def test_memory_stays_within_a_twentieth_after_many_calls_and_streams(
    tmp_path: Path, scripted: ScriptedProvider, calls: int
) -> None:
    place = LoosePlace(tmp_path, f"sqlite:///{tmp_path}/meter.db")
    assert await place.run("migrate") == 0
    scripted.always(reply=s.text("some ", "words ", "of ", "an ", "answer ").using(200, 9))
    db = Database(place.database_url)

    async def settled() -> bool:
        return await held(db) == 0

    async with place.meter() as meter:
        new = wire.NewProvider(
            kind="openai_compatible", name="S", base_url=scripted.url, models=[ROW]
        )
        await meter.client.create_provider(new)
        path, key = await a_socket(place, meter.client)
        session, _ = kit_client.session(f"unix://{path}")
        async with session:
            load, sizes = Load(session, key, scripted), []
            await load.calls(_WARM_UP)
            for _ in range(_ROUNDS):
                sizes.append(_resident_kib(meter.process.pid))
                await load.calls(calls // _ROUNDS)
                await until(settled, what="the last settlement")
            sizes.append(_resident_kib(meter.process.pid))
    total = calls + _WARM_UP
    assert load.outcomes == {"200": total * 8 // 10, "400": total // 10, "left": total // 10}
    assert sizes[-1] <= sizes[0] * _MOST_GROWTH, f"KiB: {sizes}"
    assert (await verify(db)).whole
    await db.close()


_LARGE, _LARGE_BYTES = 8, 4 * 1024 * 1024


@pytest.mark.thorough
async def test_bodies_are_gone_when_their_answers_have_begun(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    place, gate = LoosePlace(tmp_path, f"sqlite:///{tmp_path}/meter.db"), s.Gate()
    await to_head(Database(place.database_url), "metering_proxy")
    said = [{"role": "user", "content": "x" * _LARGE_BYTES}]
    asked = json.dumps({"model": MODEL, "messages": said, "stream": True}).encode()
    scripted.always(reply=s.text("some words ", gate, "and the end").using(20, 7))
    async with place.meter() as meter, contextlib.AsyncExitStack() as stack:
        row = ROW.model_copy(update={"context_tokens": 2 * _LARGE_BYTES})
        new = wire.NewProvider(
            kind="openai_compatible", name="S", base_url=scripted.url, models=[row]
        )
        await meter.client.create_provider(new)
        path, key = await a_socket(place, meter.client)
        session = await stack.enter_async_context(kit_client.session(f"unix://{path}")[0])
        shown, sizes = {"authorization": f"Bearer {key}"}, []
        for _ in range(_LARGE):
            answer = await session.post(_URL, data=io.BytesIO(asked), headers=shown)
            stack.callback(answer.close)
            assert (await answer.content.readuntil(b"some"))[-4:] == b"some"
            sizes.append(_resident_kib(meter.process.pid))
        gate.open()
    # One at a time is worked on, in a few pieces; kept, each of them would take four times its length.
    assert sizes[-1] - sizes[0] < 4 * _LARGE_BYTES // 1024, f"KiB: {sizes}"


_SLOW, _MOST_KIB = 100, 200 * 1024
_LINE = b'data: {"choices":[{"delta":{"content":"' + b"x" * 4_000 + b'"}}]}\n\n'


@dataclass
class Flood:
    """A provider that speaks for as long as anybody takes what it says. `given`: bytes that were taken."""

    given: int = 0
    asked: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One answer without an end."""
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(_LINE)
                await writer.drain()
                self.given += len(_LINE)
        writer.close()


async def _deaf_call(path: Path, key: str) -> socket.socket:
    """A call whose caller reads nothing."""
    body = json.dumps({"model": MODEL, "messages": _SAID, "stream": True}).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: m\r\n"
        f"authorization: Bearer {key}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    caller = await unix.connect(path)
    await asyncio.get_running_loop().sock_sendall(caller, head.encode() + body)
    return caller


@pytest.mark.slow
async def test_memory_is_bounded_while_a_hundred_callers_do_not_read(tmp_path: Path) -> None:
    place, flood = LoosePlace(tmp_path, f"sqlite:///{tmp_path}/meter.db"), Flood()
    assert await place.run("migrate") == 0
    provider = await asyncio.start_server(flood.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{provider.sockets[0].getsockname()[1]}/v1"
    async with place.meter() as meter, contextlib.AsyncExitStack() as stack:
        stack.callback(provider.close)
        new = wire.NewProvider(kind="openai_compatible", name="S", base_url=url, models=[ROW])
        await meter.client.create_provider(new)
        path, key = await a_socket(place, meter.client)
        before = _resident_kib(meter.process.pid)
        for _ in range(_SLOW):
            stack.callback((await _deaf_call(path, key)).close)
        await until(lambda: flood.asked == _SLOW, timeout_s=30, what="every call")

        async def held_back() -> bool:
            seen = flood.given
            await stretch(0.3)
            grown = _resident_kib(meter.process.pid) - before
            assert grown < _MOST_KIB, f"{grown} KiB for {_SLOW} callers"
            return flood.given == seen

        await until(held_back, timeout_s=60, what="the provider to be held back")
