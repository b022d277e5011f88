"""An agent's stream is its tenant's to write: what it says is checked before a browser hears it."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from gateway.stream.agent_log import rest_s
from infra.kit import sse
from tests.gateway.browser import Browser
from tests.gateway.conftest import Gateway, Serve
from tests.gateway.misbehaving import Act, listening, says
from tests.waiting import until

pytestmark = pytest.mark.thorough

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


def frame(number: int, **fields: Any) -> bytes:
    """A good frame, or one that `fields` spoil."""
    event = {"type": "TEXT_MESSAGE_CONTENT", "seq": number, "delta": f"<{number}>", **fields}
    return sse.frame(json.dumps(event), event_id=str(number))


RESET = frame(0, type="CUSTOM", name="log.reset", epoch="e1")


def streams(raw: bytes, head: bytes = HEAD) -> Act:
    """Sends this and keeps the stream open until the other side closes it."""

    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head + raw)
        await writer.drain()
        await reader.read()

    return act


async def _replaced(gateway: Gateway, tmp_path: Path) -> tuple[Browser, Path]:
    ada = await gateway.person("ada@example.org")
    tenant = await gateway.tenant_of("ada@example.org")
    await ada.api("POST", "/api/wake", {"reason": "page"})
    path = tmp_path / "t" / tenant / "1" / "agent" / "agent.sock"
    path.unlink()
    return ada, path


NOT_HEARD = {
    "our own states": b"".join(
        frame(n, type="CUSTOM", name=name, reason="x")
        for n, name in enumerate(
            ("signed_out", "quota", "instance", "pending", "heartbeat", "spawn.progress"), start=2
        )
    ),
    "unknown types": frame(2, type="EVAL") + frame(3, type=["RUN_STARTED"]) + frame(4, type=None),
    "unknown names": frame(2, type="CUSTOM", name="x") + frame(3, type="CUSTOM", name=None),
    "no number": frame(2, seq=None) + frame(2, seq="2") + frame(2, seq=True) + frame(2, seq=-2),
    "another number": sse.frame('{"type":"RUN_STARTED","seq":2}', event_id="3"),
    "no id": sse.frame('{"type":"RUN_STARTED","seq":2}'),
    "no json": sse.frame("<script>", event_id="2") + sse.frame("[]", event_id="2"),
    "another event name": sse.frame('{"type":"RUN_STARTED","seq":2}', event_id="2", event="x"),
    "numbers beyond reason": frame(10**15),
}


async def test_browser_hears_nothing_that_an_agent_may_not_say(
    gateway: Gateway, tmp_path: Path
) -> None:
    ada, path = await _replaced(gateway, tmp_path)
    for name, raw in NOT_HEARD.items():
        async with listening(path, streams(RESET + frame(1) + raw + frame(90))):
            async with ada.stream() as stream:
                await until(lambda s=stream: "<90>" in s.text(), what=name)
            assert stream.text() == "<1><90>", name
            assert not stream.named("signed_out"), name
            assert {f["name"] for _, f in stream.frames if f["type"] == "CUSTOM"} <= {
                "instance",
                "pending",
                "quota",
                "spawn.progress",
                "log.reset",
            }, name
            assert len(stream.named("quota")) == 1, name
            await until(lambda: gateway.parts.hub.count == 0)


@pytest.mark.slow  # measures time
async def test_event_of_a_million_values_is_not_read_and_holds_up_nobody(
    gateway: Gateway, tmp_path: Path
) -> None:
    ada, path = await _replaced(gateway, tmp_path)
    bob = await gateway.person("bob@example.org")
    # But for its weight it is as good as the others: read, it would be shown.
    heavy = (
        '{"type":"TEXT_MESSAGE_CONTENT","seq":2,"delta":"<2>","more":[' + "[]," * 600_000 + "1]}"
    )
    raw = sse.frame(heavy, event_id="2") + frame(3)
    async with listening(path, streams(RESET + frame(1) + raw)), ada.stream() as stream:
        longest_s = 0.0
        while "<3>" not in stream.text():
            began_s = time.monotonic()
            assert (await bob.api("GET", "/api/session")).status == 200
            longest_s = max(longest_s, time.monotonic() - began_s)
    assert stream.text() == "<1><3>"
    assert longest_s < 0.5


async def test_repeated_and_older_events_are_sent_once(gateway: Gateway, tmp_path: Path) -> None:
    ada, path = await _replaced(gateway, tmp_path)
    raw = frame(1) + frame(2) + frame(2) + frame(1) + frame(3)
    async with listening(path, streams(RESET + raw)), ada.stream() as stream:
        await until(lambda: "<3>" in stream.text())
    assert stream.text() == "<1><2><3>"


async def test_events_before_any_epoch_are_not_believed(gateway: Gateway, tmp_path: Path) -> None:
    ada, path = await _replaced(gateway, tmp_path)
    async with listening(path, streams(frame(1) + RESET + frame(2))), ada.stream() as stream:
        await until(lambda: "<2>" in stream.text())
    assert stream.text() == "<2>"


@pytest.mark.parametrize("epoch", ["", "a.b", "x" * 65, 7, None, "a\nb", "é"])
async def test_epoch_must_fit_the_cursor(gateway: Gateway, tmp_path: Path, epoch: object) -> None:
    ada, path = await _replaced(gateway, tmp_path)
    raw = frame(0, type="CUSTOM", name="log.reset", epoch=epoch) + frame(1)
    async with listening(path, streams(raw)) as seen, ada.stream() as stream:
        await until(lambda: len(seen) >= 2)
        assert stream.text() == ""
        assert not stream.named("log.reset")


async def test_stream_that_is_none_is_let_go_and_asked_for_again(
    serve: Serve, tmp_path: Path
) -> None:
    gateway = await serve(event_chars=10_000, stream_retry_s=0.02)
    ada, path = await _replaced(gateway, tmp_path)
    good = RESET + frame(1)
    for act in (
        streams(good, head=b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n"),
        streams(good, head=b"HTTP/1.1 201 OK\r\ncontent-type: text/event-stream\r\n\r\n"),
        streams(good, head=HEAD.replace(b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n")),
        streams(b"data: " + b"x" * 30_000),
        streams(b"data: x\n" * 30_000),
        streams(b": x\n" * 30_000),
        streams(b"\n" * 30_000),
        streams(frame(1) * 1000),
        says(b"HTTP/1.1 302 Go\r\nlocation: http://evil.example/\r\ncontent-length: 0\r\n\r\n"),
        says(b"garbage\r\n\r\n"),
        says(b""),
    ):
        async with listening(path, act) as seen, ada.stream() as stream:
            await until(lambda s=seen: len(s) >= 2)
            assert stream.text() == ""
            assert not stream.ended
    async with listening(path, streams(good)), ada.stream() as stream:
        await until(lambda: stream.text() == "<1>")


def test_agent_rests_when_its_bytes_are_dear_to_read() -> None:
    assert rest_s(0.001) == 0
    assert rest_s(0.02) == pytest.approx(1.0)
    assert rest_s(9.0) == 2.0
