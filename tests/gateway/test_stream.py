"""The one stream of a tab: nothing lost, nothing doubled, nothing that is not ours to say."""

import asyncio
import random

import pytest

from gateway.stream.cursor import Cursor
from tests.gateway.browser import Browser
from tests.gateway.conftest import Gateway, Serve
from tests.gateway.fake_agent import Memory
from tests.waiting import until

pytestmark = pytest.mark.thorough


async def _awake(gateway: Gateway, email: str = "ada@example.org") -> tuple[Browser, str, Memory]:
    browser = await gateway.person(email)
    tenant = await gateway.tenant_of(email)
    assert (await browser.api("POST", "/api/wake", {"reason": "page"})).status == 200
    return browser, tenant, gateway.spawner.of(tenant).memory


async def test_states_come_first_when_a_stream_opens(gateway: Gateway) -> None:
    """What waits before whether the assistant is awake: a page asks for no conversation that is on its way."""
    ada = await gateway.person("ada@example.org")
    async with ada.stream() as stream:
        await until(lambda: len(stream.frames) >= 3)
    assert [frame["name"] for _, frame in stream.frames[:3]] == ["pending", "instance", "quota"]
    assert all(not ident for ident, _ in stream.frames[:3]), "states have no id"
    assert stream.named("instance")[0]["state"] == "absent"
    assert stream.named("quota")[0]["limit"] == "$1.00"
    headers = stream.response.headers
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["cache-control"] == "no-cache, no-transform"
    assert headers["x-accel-buffering"] == "no"


async def test_retry_time_and_heartbeat_are_sent(serve: Serve) -> None:
    gateway = await serve(stream_heartbeat_s=0.1)
    ada = await gateway.person("ada@example.org")
    headers = {"host": "alcove.test"}
    async with ada.session.get(gateway.url + "/api/stream", headers=headers) as response:
        assert b"retry: 1000\n" in await response.content.readuntil(b"\n\n")
    async with ada.stream() as stream:
        await until(lambda: len(stream.named("heartbeat")) >= 3)


async def test_text_is_whole_when_the_line_is_cut_again_and_again(gateway: Gateway) -> None:
    """Cuts of the browser's line and of the agent's, at random moments; the log arrives exactly once."""
    ada, tenant, memory = await _awake(gateway)
    seed = random.Random(7)
    got: list[int] = []
    last_id = f"{memory.epoch}.0.0"
    for n in range(120):
        memory.say("TEXT_MESSAGE_CONTENT", message_id="m", delta=f"{n} ", offset=n)
    text = ""
    while len(got) < 120:
        async with ada.stream(last_event_id=last_id) as stream:
            wanted = min(120, len(got) + seed.randint(1, 25))
            agent = gateway.spawner.of(tenant).agent
            if seed.random() < 0.4 and agent is not None:
                agent.cut()
            fresh = wanted - len(got)
            await until(lambda s=stream, n=fresh: len(_seqs(s)) >= n)
            taken = _seqs(stream)
            text += stream.text()
            got += taken
            last_id = stream.last_id
    assert got == list(range(1, 121))
    assert text == "".join(f"{n} " for n in range(120))


def _seqs(stream) -> list[int]:  # type: ignore[no-untyped-def]
    return [f["seq"] for _, f in stream.frames if f["type"] == "TEXT_MESSAGE_CONTENT"]


async def test_stream_goes_on_when_the_agent_is_cut_and_restarted(gateway: Gateway) -> None:
    ada, tenant, memory = await _awake(gateway)
    async with ada.stream(f"{memory.epoch}.0.0") as stream:
        memory.say("TEXT_MESSAGE_CONTENT", message_id="m", delta="a", offset=0)
        await until(lambda: _seqs(stream) == [1])
        await gateway.spawner.die(tenant)
        memory.say("TEXT_MESSAGE_CONTENT", message_id="m", delta="b", offset=1)
        gateway.spawner.fail(tenant)
        await gateway.spawner._wake(tenant)
        await until(lambda: _seqs(stream) == [1, 2])
        assert gateway.spawner.of(tenant).generation == 2
        assert [f["state"] for f in stream.named("instance")][-1] == "ready"


async def test_log_is_reset_when_the_epoch_is_foreign(gateway: Gateway) -> None:
    ada, _, memory = await _awake(gateway)
    memory.say("TEXT_MESSAGE_CONTENT", message_id="m", delta="old", offset=0)
    async with ada.stream("another0log.41.0") as stream:
        await until(lambda: stream.named("log.reset"))
        memory.say("TEXT_MESSAGE_CONTENT", message_id="m", delta="new", offset=3)
        await until(lambda: stream.text())
    reset = stream.named("log.reset")[0]
    assert (reset["epoch"], reset["seq"]) == (memory.epoch, 1)
    assert stream.text() == "new", "what was before the reset is fetched, not streamed"
    assert stream.last_id.startswith(f"{memory.epoch}.2.")


async def test_log_is_reset_when_the_agent_was_restored_under_an_open_stream(
    gateway: Gateway,
) -> None:
    ada, tenant, memory = await _awake(gateway)
    async with ada.stream(f"{memory.epoch}.0.0") as stream:
        memory.say("TEXT_MESSAGE_CONTENT", message_id="m", delta="a", offset=0)
        await until(lambda: stream.text() == "a")
        memory.restore()
        agent = gateway.spawner.of(tenant).agent
        assert agent is not None
        agent.cut()
        await until(lambda: stream.named("log.reset"))
        memory.say("TEXT_MESSAGE_CONTENT", message_id="m", delta="b", offset=0)
        await until(lambda: stream.text() == "ab")


async def test_last_event_id_wins_over_the_cursor(gateway: Gateway) -> None:
    ada, _, memory = await _awake(gateway)
    for n in range(4):
        memory.say("TEXT_MESSAGE_CONTENT", message_id="m", delta=str(n), offset=n)
    epoch = memory.epoch
    async with ada.stream(f"{epoch}.0.0", last_event_id=f"{epoch}.2.0") as stream:
        await until(lambda: _seqs(stream) == [3, 4])


async def test_phases_are_replayed_when_a_browser_comes_late_and_not_twice(
    gateway: Gateway,
) -> None:
    ada, _, _ = await _awake(gateway)
    async with ada.stream() as stream:
        await until(lambda: len(stream.named("spawn.progress")) == 3)
        await until(lambda: stream.named("log.reset"))
    assert [f["state"] for f in stream.named("instance")] == ["ready"], "no flicker of old states"
    async with ada.stream(last_event_id=stream.last_id) as again:
        await until(lambda: again.named("quota"))
        await gateway.spawner.stop(await gateway.tenant_of("ada@example.org"))
        await until(lambda: again.named("spawn.progress"))
    assert [f["phase"] for f in again.named("spawn.progress")] == ["stopped"]
    assert again.named("instance")[-1]["state"] == "stopped"


async def test_stream_wakes_nobody_and_is_nobodys_activity(serve: Serve) -> None:
    """Two idle tabs whose streams end and come again: the agent is never woken, nobody was there."""
    gateway = await serve(stream_s=0.05, stream_heartbeat_s=0.05)
    ada = await gateway.person("ada@example.org")
    gateway.spawner.calls.clear()
    for _ in range(5):
        async with ada.stream() as one, ada.stream() as two:
            await until(lambda a=one, b=two: a.ended and b.ended)
    said = {call.split()[0] for call in gateway.spawner.calls}
    assert "wake" not in said
    assert "activity" not in said
    assert "events" in said


async def test_stream_is_ended_by_the_server_after_its_time(serve: Serve) -> None:
    gateway = await serve(stream_s=0.3)
    ada = await gateway.person("ada@example.org")
    async with ada.stream() as stream:
        await until(lambda: stream.ended, timeout_s=3)
    assert not stream.named("signed_out")
    assert gateway.parts.hub.count == 0


async def test_streams_end_when_the_gateway_stops(serve: Serve) -> None:
    gateway = await serve()
    ada = await gateway.person("ada@example.org")
    async with ada.stream() as stream:
        await until(lambda: stream.frames)
        gateway.parts.hub.close()
        await until(lambda: stream.ended, timeout_s=2)
    refused = await ada.api("GET", "/api/stream")
    assert refused.status == 503


async def test_quota_is_told_anew_when_a_turn_has_ended(gateway: Gateway) -> None:
    ada, tenant, _ = await _awake(gateway)
    async with ada.stream() as stream:
        await until(lambda: stream.named("quota") and stream.named("log.reset"))
        gateway.meter.spend(tenant, "2026-01-01", "m", 960_000_000)
        await ada.post("hello", "m1")
        await until(lambda: len(stream.named("quota")) == 2)
    told = stream.named("quota")[-1]
    assert (told["percent"], told["level"]) == (96, "low")
    assert (told["spent"], told["left"]) == ("$0.96", "$0.04")


async def test_quota_is_asked_until_it_is_settled_when_a_turn_has_ended(gateway: Gateway) -> None:
    ada, tenant, _ = await _awake(gateway)
    async with ada.stream() as stream:
        await until(lambda: stream.named("quota") and stream.named("log.reset"))
        gateway.meter.held[tenant] = 70_000_000
        asked = len(gateway.meter.calls)
        await ada.post("hello", "m1")
        await until(lambda: len(gateway.meter.calls) >= asked + 2)
        gateway.meter.spend(tenant, "2026-01-01", "m", 1_000_000_000)
        gateway.meter.held[tenant] = 0
        await until(lambda: stream.named("quota")[-1]["level"] == "out")


async def test_stream_works_when_spawner_and_meter_are_away(gateway: Gateway) -> None:
    """An awake agent is reached without the spawner: its address is remembered."""
    ada, _, memory = await _awake(gateway)
    gateway.spawner.away = gateway.meter.away = True
    async with ada.stream(f"{memory.epoch}.0.0") as stream:
        memory.say("TEXT_MESSAGE_CONTENT", message_id="m", delta="still here", offset=0)
        await until(lambda: stream.text() == "still here")
    assert not stream.named("quota")


async def test_client_that_leaves_leaves_nothing_behind(gateway: Gateway) -> None:
    ada, _, memory = await _awake(gateway)
    async with ada.stream() as stream:
        await until(lambda: stream.named("log.reset"))
        assert len(memory._waiters) == 1
    await until(lambda: gateway.parts.hub.count == 0)
    await until(lambda: not memory._waiters)


async def test_twenty_fifth_tab_is_refused(serve: Serve) -> None:
    gateway = await serve(streams_per_tenant=2)
    ada = await gateway.person("ada@example.org")
    async with ada.stream() as one, ada.stream():
        await until(lambda: one.frames)
        answer = await ada.api("GET", "/api/stream")
        assert (answer.status, answer.reason) == (429, "streams")
        bob = await gateway.person("bob@example.org")
        async with bob.stream() as other:
            await until(lambda: other.frames)


async def test_slow_tab_holds_up_no_other(gateway: Gateway) -> None:
    ada, _, memory = await _awake(gateway)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(gateway.url.rsplit(":")[-1]))
    cookie = "; ".join(f"{c.key}={c.value}" for c in ada.jar)
    writer.write(
        f"GET /api/stream HTTP/1.1\r\nHost: alcove.test\r\nCookie: {cookie}\r\n\r\n".encode()
    )
    await reader.readuntil(b"log.reset")
    async with ada.stream(f"{memory.epoch}.0.0") as stream:
        for n in range(300):
            memory.say("TEXT_MESSAGE_CONTENT", message_id="m", delta="x" * 20_000, offset=n)
        await until(lambda: len(_seqs(stream)) == 300)
    writer.close()


@pytest.mark.parametrize(
    ("text", "cursor"),
    [
        ("k3j.41.7", Cursor("k3j", 41, 7)),
        ("k3j.41", Cursor("k3j", 41, 0)),
        ("-.0.7", Cursor(None, 0, 7)),
        ("-.9.7", Cursor(None, 0, 7)),
        ("", Cursor()),
        (None, Cursor()),
        ("a.b.c", Cursor()),
        ("k3j.-1.0", Cursor()),
        ("k3j.1.2.3", Cursor()),
        ("k3j." + "9" * 30, Cursor()),
        ("../x.1.1", Cursor()),
    ],
)
def test_cursor_is_what_it_says_or_the_beginning(text: str | None, cursor: Cursor) -> None:
    assert Cursor.parse(text) == cursor
    assert Cursor.parse(str(cursor)) == cursor
