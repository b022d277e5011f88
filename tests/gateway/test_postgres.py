"""The stories whose statements differ between databases, on a real PostgreSQL."""

import asyncio
import re
from pathlib import Path

import pytest

from gateway.limits import Bucket
from infra.kit import migrate
from infra.kit.db import Database
from tests.gateway.browser import PASSWORD
from tests.gateway.conftest import Gateway, Serve, settings_for
from tests.waiting import until

pytestmark = pytest.mark.postgres


@pytest.fixture
async def gateway(serve: Serve, postgres_url: str, tmp_path: Path) -> Gateway:
    db = Database(postgres_url)
    await migrate.upgrade(db, "gateway")
    await db.close()
    settings = settings_for(tmp_path, postgres_url)
    return await serve(settings=settings, sign_in_account=Bucket(3, 60), pending_per_tenant=5)


async def test_two_people_with_one_address_make_one_account(gateway: Gateway) -> None:
    browsers = [gateway.browser() for _ in range(4)]
    for browser in browsers:
        await browser.visit("/sign-up")
    answers = await asyncio.gather(
        *(b.submit("/sign-up", email="ada@example.org", password=PASSWORD) for b in browsers)
    )
    assert sorted(answer.status for answer in answers) == [303, 409, 409, 409]


async def test_attempts_at_once_are_counted_one_by_one(gateway: Gateway) -> None:
    browsers = [gateway.browser() for _ in range(6)]
    for browser in browsers:
        await browser.visit("/sign-in")
    answers = await asyncio.gather(
        *(b.submit("/sign-in", email="eve@example.org", password="no") for b in browsers)
    )
    assert sorted(answer.status for answer in answers) == [401] * 3 + [429] * 3


async def test_messages_at_once_get_one_place_each_and_no_more_than_there_are(
    gateway: Gateway,
) -> None:
    gateway.spawner.waking = "when told"
    ada = await gateway.person("ada@example.org")
    tenant = await gateway.tenant_of("ada@example.org")
    answers = await asyncio.gather(*(ada.post(f"t{n}", f"m{n}") for n in range(8)))
    assert sorted(answer.status for answer in answers) == [202] * 5 + [429] * 3
    listed = (await ada.api("GET", "/api/pending-messages")).json["messages"]
    await until(lambda: gateway.spawner.of(tenant).state == "starting")
    await gateway.spawner.become_ready(tenant)
    memory = gateway.spawner.of(tenant).memory
    await until(lambda: len(memory.by_client_id) == 5)
    assert list(memory.by_client_id) == [each["client_message_id"] for each in listed]


async def test_admin_finds_changes_and_suspends(gateway: Gateway) -> None:
    root = await gateway.admin()
    ada = await gateway.person("ada@example.org")
    theirs = await gateway.tenant_of("ada@example.org")
    for sort in ("email", "plan", "status", "last_seen", "created", "charge_month", "state"):
        page = await root.visit(f"/admin/tenants?sort={sort}&q=example")
        assert len(re.findall(r">(\w+)@example\.org</a>", page.text)) == 2, sort
    path = f"/admin/tenants/{theirs}"
    assert (await root.submit(f"{path}/plan", plan="plus", reason="x")).status == 303
    async with ada.stream() as stream:
        await until(lambda: stream.named("quota"))
        assert (await root.submit(f"{path}/suspension", reason="x")).status == 303
        await until(lambda: stream.ended, timeout_s=2)
    assert (await root.visit(path)).status == 200
    await until(lambda: gateway.meter.tenants[theirs].version == 3)
    for asked, rows in (
        ("", 3),
        ("q=ada@example.org", 2),
        ("q=ADMIN@", 3),
        ("act=plan.changed", 1),
    ):
        found = (await root.visit(f"/admin/audit?{asked}")).text
        assert found.count('class="line quiet numbers"') == rows, asked
