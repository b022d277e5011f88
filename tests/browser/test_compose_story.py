"""The whole story under Compose, with its real demonstration model: the page shows what the databases hold."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, expect

from infra.kit import money
from tests.browser.chat_page import ChatPage
from tests.infra.images.conftest import installation
from tests.infra.images.installation import Installation
from tests.journeys import evidence

__all__ = ["installation"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.compose,
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]
ADA = "ada@example.org"
TEXTS = "SELECT text FROM message WHERE role = 'assistant' ORDER BY created_at, id"


@pytest.fixture
async def house(installation: Installation) -> Installation:
    """The installation, up."""
    await asyncio.to_thread(installation.up)
    return installation


@pytest.fixture
async def tabs(browser: Browser, house: Installation) -> AsyncIterator[tuple[ChatPage, ChatPage]]:
    """Ada's tab and the admin's, in profiles of their own."""
    made = []
    for _ in range(2):
        context = await browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
        made.append(ChatPage(await context.new_page(), house.url))
    yield made[0], made[1]
    for tab in made:
        await tab.page.context.close()


async def set_quota(admin: ChatPage, tenant: str, dollars: str, reason: str) -> None:
    """Changes the tenant's quota on the admin's page; the change stands in its audit."""
    await admin.page.goto(f"{admin.url}/admin/tenants/{tenant}")
    dialog = admin.page.locator("dialog#quota")
    await admin.page.locator("[data-open=quota]").click()
    await dialog.locator("[name=limit_usd]").fill(dollars)
    await dialog.locator("[name=reason]").fill(reason)
    await dialog.get_by_role("button", name="Change the quota").click()
    await expect(admin.page.locator(".audit")).to_contain_text(reason)


async def same_as_the_databases(house: Installation, chat: ChatPage, tenant: str) -> None:
    """The answers on the page are the agent's, the sum on the usage page is the ledger's."""
    stored = [row["text"] for row in evidence.agent_rows(house, tenant, TEXTS)]
    shown = await chat.answers()
    assert len(shown) == len(stored)
    for one, other in zip(
        shown, stored, strict=True
    ):  # the page shows Markdown, the database its source
        assert one.split()[:5] == other.split()[:5]
        assert one.split()[-3:] == other.split()[-3:]
    await evidence.all_settled(house)
    charge = sum(entry["charge_nanos"] for entry in await evidence.entries(house, tenant))
    assert charge > 0
    await chat.page.goto(f"{chat.url}/usage")
    month = chat.page.locator("section[aria-labelledby=sums-title] tbody tr").nth(1)
    await expect(month).to_contain_text(money.format_usd(charge))


async def test_person_chats_meets_the_limit_and_goes_on_when_all_of_it_runs_under_compose(
    house: Installation, tabs: tuple[ChatPage, ChatPage]
) -> None:
    chat, admin = tabs
    await admin.become_admin(await asyncio.to_thread(house.admin_link), "keeper@example.org")
    await chat.sign_up(ADA)
    await chat.say("Please tell me a long story about the sea and a lighthouse.")
    await chat.awake()
    prose = chat.page.locator("article.message.assistant .answer").last
    await expect(prose).to_contain_text(re.compile(r"\w+ \w+"), timeout=60_000)
    begun = (await chat.answers())[-1].split()[:2]
    await chat.page.reload()
    await chat.shows(begun[0])
    await chat.finished(timeout_s=120)
    assert (await chat.answers())[-1].split()[: len(begun)] == begun
    await expect(chat.page.locator("article.message.user")).to_have_count(1)
    tenant = await evidence.tenant_of(house, ADA)
    place = chat.page.url
    await same_as_the_databases(house, chat, tenant)

    await chat.page.goto(place)
    await set_quota(admin, tenant, "0.00001", "a test of the limit")
    await expect(chat.page.locator(".card.limit time")).to_have_count(1, timeout=30_000)
    calls = len(await evidence.entries(house, tenant))
    draft = chat.page.locator("#composer-text")
    await draft.fill("And then?")
    await draft.press("Enter")
    await expect(chat.page.locator("#alerts")).to_contain_text("Not sent")
    await expect(draft).to_have_value("And then?")
    assert len(await evidence.entries(house, tenant)) == calls

    await set_quota(admin, tenant, "5.00", "a good customer")
    await expect(chat.page.locator(".card.limit")).to_have_count(0, timeout=30_000)
    await draft.press("Enter")
    await expect(chat.page.locator("article.message.assistant")).to_have_count(2, timeout=30_000)
    await chat.finished(timeout_s=120)
    assert len(await evidence.entries(house, tenant)) == calls + 1
    await same_as_the_databases(house, chat, tenant)
    chat.healthy()
    admin.healthy()

    await asyncio.to_thread(house.compose, "down")
    await asyncio.to_thread(house.up)
    await chat.page.goto(place)
    await expect(chat.page.locator("article.message.assistant")).to_have_count(2, timeout=60_000)
    await chat.finished()
    await same_as_the_databases(house, chat, tenant)
