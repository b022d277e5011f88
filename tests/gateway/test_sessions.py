"""How long a session lasts, and how it ends: by itself, by its owner, by a new password."""

import asyncio
import time

from infra.kit.clock import FakeClock
from tests.gateway.browser import PASSWORD
from tests.gateway.conftest import Gateway, Serve
from tests.waiting import until

DAY_S = 86_400


async def test_session_ends_after_30_days_when_it_is_busy(serve: Serve) -> None:
    clock = FakeClock()
    gateway = await serve(clock=clock)
    ada = await gateway.person("ada@example.org")
    clock.advance(14 * DAY_S - 60)
    assert (await ada.visit("/account")).status == 200
    clock.advance(14 * DAY_S - 60)
    assert (await ada.visit("/account")).status == 200
    clock.advance(2 * DAY_S + 180)
    assert (await ada.visit("/account")).status == 303, "30 days in all, however busy"


async def test_session_ends_when_nobody_comes_for_14_days(serve: Serve) -> None:
    clock = FakeClock()
    gateway = await serve(clock=clock)
    ada = await gateway.person("ada@example.org")
    clock.advance(14 * DAY_S + 1)
    assert (await ada.visit("/account")).status == 303


async def test_admin_session_ends_after_12_hours(serve: Serve) -> None:
    clock = FakeClock()
    gateway = await serve(clock=clock)
    admin = await gateway.admin()
    clock.advance(11 * 3600)
    assert (await admin.visit("/admin/host")).status == 200
    clock.advance(3600)
    assert (await admin.visit("/admin/host")).status == 303


async def test_stream_does_not_keep_a_session_alive(serve: Serve) -> None:
    clock = FakeClock()
    gateway = await serve(clock=clock)
    ada = await gateway.person("ada@example.org")
    clock.advance(10 * DAY_S)
    async with ada.stream() as stream:
        await until(lambda: stream.frames)
    clock.advance(5 * DAY_S)
    assert (await ada.api("GET", "/api/session")).status == 401


async def test_other_sessions_end_when_the_password_changes(gateway: Gateway) -> None:
    here = await gateway.person("ada@example.org")
    there = gateway.browser()
    await there.sign_in("ada@example.org")
    new = "another room, another lamp"
    wrong = await here.submit("/account/password", current="not it", password=new)
    assert wrong.status == 400
    answer = await here.submit("/account/password", current=PASSWORD, password=new)
    assert (answer.status, answer.location) == (303, "/account")
    assert "password is changed" in (await here.visit("/account")).text
    assert (await there.api("GET", "/api/session")).status == 401
    assert (await gateway.browser().sign_in("ada@example.org")).status == 401
    assert (await gateway.browser().sign_in("ada@example.org", new)).status == 303


async def test_sessions_are_listed_and_revoked_one_by_one(gateway: Gateway) -> None:
    here = await gateway.person("ada@example.org")
    there = gateway.browser()
    await there.sign_in("ada@example.org")
    page = await here.visit("/account")
    assert page.text.count("/revocation") == 2  # one other session, and "everywhere else"
    ident = page.text.split("/account/sessions/")[2].split("/")[0]
    stranger = await gateway.person("eve@example.org")
    assert (await stranger.submit(f"/account/sessions/{ident}/revocation")).status == 404
    assert (await there.visit("/account")).status == 200
    assert (await here.submit(f"/account/sessions/{ident}/revocation")).status == 303
    assert (await there.visit("/account")).status == 303
    assert (await here.visit("/account")).status == 200


async def test_open_stream_ends_within_two_seconds_when_its_session_is_revoked(
    gateway: Gateway,
) -> None:
    here = await gateway.person("ada@example.org")
    there = gateway.browser()
    await there.sign_in("ada@example.org")
    async with there.stream() as lost, here.stream() as kept:
        await until(lambda: lost.frames and kept.frames)
        began = time.monotonic()
        await here.submit("/account/sessions/revocations")
        await until(lambda: lost.ended, timeout_s=2)
        assert time.monotonic() - began < 2
        assert lost.named("signed_out")[0]["reason"] == "signed_out"
        assert not kept.ended


async def test_open_stream_ends_when_another_process_ends_the_session(serve: Serve) -> None:
    one, two = await serve(), await serve()
    ada = await one.person("ada@example.org")
    same = two.browser()
    same.jar.update_cookies({c.key: c.value for c in ada.jar})
    await same.visit("/account")
    async with ada.stream() as stream:
        await until(lambda: stream.frames)
        await same.submit("/sign-out")
        await until(lambda: stream.ended, timeout_s=2)
        assert stream.named("signed_out")[0]["reason"] == "signed_out"


async def test_stream_ends_though_its_browser_reads_nothing(serve: Serve) -> None:
    gateway = await serve()
    ada = await gateway.person("ada@example.org")
    await ada.post("x", "m0")
    tenant = await gateway.tenant_of("ada@example.org")
    reader, writer = await asyncio.open_connection("127.0.0.1", int(gateway.url.rsplit(":")[-1]))
    cookie = "; ".join(f"{c.key}={c.value}" for c in ada.jar)
    writer.write(
        f"GET /api/stream HTTP/1.1\r\nHost: alcove.test\r\nCookie: {cookie}\r\n\r\n".encode()
    )
    await reader.readuntil(b"log.reset")
    memory = gateway.spawner.of(tenant).memory
    for _ in range(400):
        memory.say("TEXT_MESSAGE_CONTENT", message_id="m", delta="x" * 50_000, offset=0)
    assert gateway.parts.hub.count == 1
    await ada.submit("/sign-out")
    await until(lambda: gateway.parts.hub.count == 0, timeout_s=3)
    writer.close()
