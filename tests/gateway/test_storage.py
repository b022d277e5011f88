"""Who has filled their storage sees it on the account page, and can wake their assistant to make room."""

import re

from sqlalchemy import select

from gateway.models import audit
from tests.gateway.conftest import Gateway

GB = 1_000_000_000


async def _shown(gateway: Gateway, stored_bytes: int | None) -> str:
    ada = await gateway.person("ada@example.org")
    gateway.spawner.of(await gateway.tenant_of("ada@example.org")).stored_bytes = stored_bytes
    page = await ada.visit("/account")
    assert page.status == 200
    found = re.search(r'<section[^>]* id="storage".*?</section>', page.text, re.S)
    assert found is not None
    return found[0]


async def test_account_page_says_what_is_stored_and_what_the_plan_gives(gateway: Gateway) -> None:
    section = await _shown(gateway, 412_000_000)
    assert "412 MB" in section
    assert "of 1 GB" in section
    assert "41 % used" in section
    assert "clearing" not in section


async def test_account_page_invents_nothing_when_nothing_was_measured(gateway: Gateway) -> None:
    section = await _shown(gateway, None)
    assert "Nothing was measured yet" in section
    assert "%" not in section.split("Nothing was measured")[1]


async def test_account_page_comes_without_the_spawner(gateway: Gateway) -> None:
    gateway.spawner.away = True
    assert "cannot be asked just now" in await _shown(gateway, 1)


async def test_person_makes_room_by_themselves_when_their_storage_is_full(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    tenant = await gateway.tenant_of("ada@example.org")
    row = gateway.spawner.of(tenant)
    row.stored_bytes = GB + GB // 10
    refused = await ada.api("POST", "/api/wake", {"reason": "page"})
    assert (refused.status, refused.json["error"]["details"]["reason"]) == (403, "storage_full")
    assert "Wake it to make room" in (await ada.visit("/account")).text
    done = await ada.submit("/account/storage/clearing")
    assert (done.status, done.location) == (303, "/account")
    assert row.state == "ready"
    page = await ada.visit("/account")
    assert "wakes for a quarter of an hour" in page.text
    assert "may be awake to make room until" in page.text
    async with gateway.parts.db.read() as reading:
        rows = await reading.rows(select(audit).where(audit.c.action == "storage.clearing"))
    assert [(each["actor"], each["tenant"]) for each in rows] == [("ada@example.org", tenant)]


async def test_person_is_told_whom_to_ask_when_there_is_too_much_to_wake(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    tenant = await gateway.tenant_of("ada@example.org")
    gateway.spawner.of(tenant).stored_bytes = 3 * GB
    await ada.visit("/account")
    assert (await ada.submit("/account/storage/clearing")).status == 303
    assert "Ask whoever runs this Alcove to clear it" in (await ada.visit("/account")).text
    assert gateway.spawner.of(tenant).state == "absent"
    async with gateway.parts.db.read() as reading:
        assert not await reading.rows(select(audit).where(audit.c.action == "storage.clearing"))


async def test_leave_to_make_room_is_asked_for_by_our_own_page_alone(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    gateway.spawner.of(await gateway.tenant_of("ada@example.org")).stored_bytes = GB + 1
    await ada.visit("/account")
    ada.csrf = "another token"
    assert (await ada.submit("/account/storage/clearing")).status == 403
    assert not [call for call in gateway.spawner.calls if call.startswith("clear")]
