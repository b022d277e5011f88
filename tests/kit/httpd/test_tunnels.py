"""A CONNECT is handed over as a tunnel: a coded refusal, or raw bytes both ways until both have ended."""

import asyncio
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infra.kit import httpd
from infra.kit.errors import AlcoveError
from infra.kit.http1.inflow import HIGH_WATER_BYTES
from tests.kit.httpd.far import tunnelling
from tests.kit.httpd.wire import GET, Client
from tests.waiting import until

pytestmark = pytest.mark.thorough

CONNECT = b"CONNECT far.example:443 HTTP/1.1\r\nhost: far.example:443\r\n\r\n"


async def opened(client: Client) -> None:
    """Reads the answer that accepts a tunnel."""
    head = await client.reader.readuntil(b"\r\n\r\n")
    assert head == b"HTTP/1.1 200 Connection established\r\nx-tunnel: yes\r\n\r\n"


async def test_bytes_pass_both_ways_when_a_tunnel_is_open(tmp_path: Path) -> None:
    async with tunnelling(tmp_path) as (there, far), there.client() as client:
        client.send(CONNECT)
        await opened(client)
        reader, writer = await far.peer()
        for size in (1, 70_000, 1_000_000):
            up, down = bytes([size % 251]) * size, bytes([size % 241]) * size
            client.send(up)
            writer.write(down)
            assert await reader.readexactly(size) == up
            assert await client.reader.readexactly(size) == down
    assert far.passed == {"up": 1_070_001, "down": 1_070_001}


async def test_bytes_that_came_with_the_head_are_the_first_in_the_tunnel(tmp_path: Path) -> None:
    async with tunnelling(tmp_path) as (there, far), there.client() as client:
        far.gate = asyncio.Event()
        client.send(CONNECT + b"GET /smuggled HTTP/1.1\r\n")
        await until(lambda: there.listener.connections == 1 and not there.listener.unproven)
        client.send(b"more")
        far.gate.set()
        await opened(client)
        reader, _ = await far.peer()
        assert await reader.readexactly(28) == b"GET /smuggled HTTP/1.1\r\nmore"


async def test_each_half_ends_by_itself(tmp_path: Path) -> None:
    async with tunnelling(tmp_path) as (there, far), there.client() as client:
        client.send(CONNECT)
        await opened(client)
        reader, writer = await far.peer()
        client.send(b"last words")
        client.writer.write_eof()
        assert await reader.read() == b"last words"
        writer.write(b"an answer" * 20_000)
        writer.close()
        assert await client.reader.read() == b"an answer" * 20_000
        await until(lambda: far.endings)
        assert far.endings == ["closed"]
        await until(lambda: there.listener.connections == 0)


async def test_far_end_may_end_first(tmp_path: Path) -> None:
    async with tunnelling(tmp_path) as (there, far), there.client() as client:
        client.send(CONNECT)
        await opened(client)
        reader, writer = await far.peer()
        writer.write(b"bye")
        writer.write_eof()
        assert await client.reader.read() == b"bye"
        client.send(b"still here")
        client.writer.write_eof()
        assert await reader.read() == b"still here"
        await until(lambda: far.endings == ["closed"])


async def test_refusal_is_a_coded_answer_and_the_end(tmp_path: Path) -> None:
    async with tunnelling(tmp_path) as (there, far), there.client() as client:
        client.send(b"CONNECT other:443 HTTP/1.1\r\nhost: other\r\n\r\n" + GET)
        reply = await client.reply()
        assert (reply.status, reply.headers["connection"]) == (403, "close")
        assert b'"reason":"elsewhere"' in reply.body
        assert await client.ended()
        assert not far.peers


@pytest.mark.parametrize(
    "head",
    [
        b"CONNECT far.example HTTP/1.1\r\nhost: h\r\n\r\n",
        b"CONNECT far.example:0 HTTP/1.1\r\nhost: h\r\n\r\n",
        b"CONNECT far.example:65536 HTTP/1.1\r\nhost: h\r\n\r\n",
        b"CONNECT far.example:443/x HTTP/1.1\r\nhost: h\r\n\r\n",
        b"CONNECT http://far.example:443 HTTP/1.1\r\nhost: h\r\n\r\n",
        b"CONNECT u@far.example:443 HTTP/1.1\r\nhost: h\r\n\r\n",
        b"CONNECT /x HTTP/1.1\r\nhost: h\r\n\r\n",
        b"CONNECT far.example:443 HTTP/1.1\r\n\r\n",
        b"CONNECT far.example:443 HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabc",
        b"CONNECT far.example:443 HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n",
    ],
)
async def test_connect_is_400_when_it_has_no_one_meaning(head: bytes, tmp_path: Path) -> None:
    async with tunnelling(tmp_path) as (there, far):
        assert (await there.ask(head)).status == 400
        assert not far.peers


async def test_tunnel_waits_its_turn_behind_requests(tmp_path: Path) -> None:
    async with tunnelling(tmp_path) as (there, far), there.client() as client:
        client.send(GET + CONNECT + b"first")
        assert (await client.reply()).status == 200
        await opened(client)
        reader, _ = await far.peer()
        assert await reader.readexactly(5) == b"first"


async def test_fast_side_is_held_back_when_the_other_takes_nothing(tmp_path: Path) -> None:
    async with tunnelling(tmp_path) as (there, far), there.client() as client:
        client.send(CONNECT)
        await opened(client)
        reader, writer = await far.peer()
        client.writer.transport.pause_reading()
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        most = 32 * HIGH_WATER_BYTES
        client.send(bytes(4 * most))
        writer.write(bytes(4 * most))
        await _still(lambda: tuple(far.passed.values()))
        assert 0 < far.passed["up"] < most
        assert 0 < far.passed["down"] < most
        client.writer.transport.resume_reading()
        reader._transport.resume_reading()  # type: ignore[attr-defined]
        assert len(await reader.readexactly(4 * most)) == 4 * most
        assert len(await client.reader.readexactly(4 * most)) == 4 * most


async def _still(seen: object) -> None:
    """Returns once `seen()` has not changed for a while."""
    assert callable(seen)
    before, same = None, 0

    def quiet() -> bool:
        nonlocal before, same
        now = seen()
        same = same + 1 if now == before and any(now) else 0
        before = now
        return same > 20

    await until(quiet)


async def test_tunnel_is_cut_when_nothing_passes(tmp_path: Path) -> None:
    async with tunnelling(tmp_path) as (there, far), there.client() as client:
        far.idle_s = 0.1
        client.send(CONNECT)
        await opened(client)
        reader, _ = await far.peer()
        assert await client.ended()
        assert await reader.read() == b""
        await until(lambda: far.endings == ["idle"])


async def test_far_connection_is_broken_when_the_client_leaves(tmp_path: Path) -> None:
    async with tunnelling(tmp_path) as (there, far), there.client() as client:
        client.send(CONNECT)
        await opened(client)
        reader, writer = await far.peer()
        client.writer.transport.abort()
        writer.write(bytes(100_000))
        await until(lambda: far.endings)
        await until(lambda: there.listener.connections == 0)
        assert await reader.read() == b""


async def test_client_is_cut_when_the_far_connection_breaks(tmp_path: Path) -> None:
    async with tunnelling(tmp_path) as (there, far), there.client() as client:
        client.send(CONNECT)
        await opened(client)
        _, writer = await far.peer()
        writer.transport.abort()
        client.send(b"x" * 200_000)
        async with asyncio.timeout(5):
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await client.reader.readexactly(1)
        await until(lambda: far.endings)


async def test_both_are_cut_when_passing_is_refused(tmp_path: Path) -> None:
    async with tunnelling(tmp_path) as (there, far), there.client() as client:
        far.budget = 10
        client.send(CONNECT)
        await opened(client)
        reader, _ = await far.peer()
        client.send(b"x" * 11)
        assert await client.ended()
        assert await reader.read() == b""
        await until(lambda: far.endings)
        assert isinstance(far.endings[0], AlcoveError)


async def test_tunnels_end_when_the_listener_closes(tmp_path: Path) -> None:
    async with tunnelling(tmp_path) as (there, far), there.client() as client:
        client.send(CONNECT)
        await opened(client)
        await there.listener.close(grace_s=0.1)
        assert await client.ended()
        assert isinstance(far.endings[0], asyncio.CancelledError)


EDITS = st.lists(
    st.tuples(st.integers(0, len(CONNECT) + 9), st.integers(0, 3), st.binary(max_size=3)),
    max_size=4,
)


@given(edits=EDITS, cut=st.integers(1, len(CONNECT) + 9))
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_answer_is_never_500_when_bytes_are_changed_and_cut_anywhere(
    edits: list[tuple[int, int, bytes]], cut: int, tmp_path: Path
) -> None:
    data = CONNECT + b"raw bytes"
    for at, removed, added in edits:
        data = data[:at] + added + data[at + removed :]
    hasty = httpd.Limits(head_s=0.02, idle_s=0.02, body_s=0.02)
    async with tunnelling(tmp_path, hasty) as (there, far), there.client() as client:
        far.idle_s = 0.02
        client.send(data[:cut])
        await asyncio.sleep(0)
        client.send(data[cut:])
        try:
            seen = await client.reader.read()
        except ConnectionError:
            return
        statuses = {int(found) for found in re.findall(rb"^HTTP/1.1 (\d+)", seen)}
        assert statuses <= {200, 400, 403, 408, 431, 501}
