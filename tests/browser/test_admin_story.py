"""What an admin does on the pages holds in every room at once: seen in both tabs, found in the databases."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests import scripted as s
from tests.browser.chat_page import ChatPage
from tests.journeys import evidence
from tests.journeys.house import House, agent_pids
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ADA = "ada@example.org"
KEY = "sk-a-key-of-the-providers-that-nobody-sees-a1B2"


class TestWithoutProvider:
    """Nothing is connected when the house opens."""

    @pytest.fixture
    async def house(
        self, tmp_path: Path, deployment: str, databases: dict[str, str]
    ) -> AsyncIterator[House]:
        """A running house without any model."""
        built = House(tmp_path / "house", deployment, databases)
        try:
            await built.start()
            yield built
        finally:
            await built.close()

    async def test_next_message_is_answered_when_an_admin_connects_a_provider(
        self, house: House, scripted: s.ScriptedProvider, chat: ChatPage, admin: ChatPage
    ) -> None:
        scripted.canaries = (KEY,)
        await chat.sign_up(ADA)
        await chat.awake()
        await chat.say("hello")
        await expect(chat.page.locator(".ending")).to_contain_text("No model is connected")
        form = admin.page.locator("form.panel")
        await admin.page.goto(f"{house.url}/admin/providers/new")
        await form.get_by_text("Another address").click()
        await form.get_by_role("textbox", name="Name").fill("Ours")
        await form.get_by_role("textbox", name="Address").fill(scripted.base_url)
        await form.get_by_label("Key", exact=True).fill(KEY)
        await form.locator("[name=model_id]").fill(scripted.models[0])
        await form.get_by_label("US dollars for a million tokens read").fill("3.00")
        await form.get_by_label("US dollars for a million tokens written").fill("15.00")
        await form.get_by_role("button", name="Connect and test").click()
        await expect(admin.page.locator("main")).to_contain_text("Works")
        assert KEY not in await admin.page.content()
        scripted.then(s.last_contains("hello"), reply=s.text("Hello from the new one."))
        await chat.page.get_by_role("button", name="Try again").click()
        await chat.shows("Hello from the new one.")
        await chat.finished()
        assert scripted.requests[-1].headers["authorization"] == f"Bearer {KEY}"
        [row] = await evidence.rows(house, "metering_proxy", "SELECT * FROM provider")
        assert row["sealed_key"].startswith("v1.")
        kept = [path for path in house.root.parent.rglob("*") if path.is_file()]
        assert [path for path in kept if KEY.encode() in path.read_bytes()] == []
        await evidence.all_settled(house)


async def test_assistant_sleeps_wakes_and_is_suspended_when_the_admin_says_so(
    house: House, scripted: s.ScriptedProvider, chat: ChatPage, admin: ChatPage
) -> None:
    chat.refusals = {401, 403}
    await chat.sign_up(ADA)
    await chat.awake()
    tenant = await evidence.tenant_of(house, ADA)
    await admin.page.goto(f"{house.url}/admin/tenants/{tenant}")
    await admin.page.get_by_role("button", name="Put to sleep").click()
    await expect(chat.page.locator("#instance .words")).to_have_text("Asleep", timeout=15_000)
    assert tenant not in agent_pids(house)
    await admin.page.goto(f"{house.url}/admin/tenants/{tenant}")
    await admin.page.get_by_role("button", name="Wake").click()
    await chat.awake()
    assert tenant in agent_pids(house)

    await admin.page.goto(f"{house.url}/admin/tenants/{tenant}")
    await admin.page.locator("[data-open=suspend]").click()
    await admin.page.locator("dialog#suspend [name=reason]").fill("an unpaid bill")
    await admin.page.locator("dialog#suspend").get_by_role("button", name="Suspend").click()
    await expect(chat.page.locator(".card")).to_contain_text("suspended", timeout=15_000)
    await until(lambda: tenant not in agent_pids(house), what="the agent's end")
    [found] = await evidence.rows(
        house, "metering_proxy", "SELECT status FROM tenant WHERE tenant = :t", t=tenant
    )
    assert found["status"] == "suspended"

    await admin.page.goto(f"{house.url}/admin/tenants/{tenant}")
    await admin.page.locator("[data-open=resume]").click()
    await admin.page.locator("dialog#resume [name=reason]").fill("paid")
    await admin.page.locator("dialog#resume").get_by_role("button", name="Resume").click()
    await expect(admin.page.locator(".audit")).to_contain_text("an unpaid bill")
    done = await evidence.rows(
        house,
        "gateway",
        "SELECT action, actor, reason FROM audit WHERE tenant = :t ORDER BY id",
        t=tenant,
    )
    assert {row["actor"] for row in done} >= {"admin@example.org"}
    assert [row["reason"] for row in done if row["reason"]] == ["an unpaid bill", "paid"]
    scripted.then(s.last_contains("back"), reply=s.text("Welcome back."))
    await chat.sign_in(ADA)
    await chat.say("I am back")
    await chat.shows("Welcome back.")
    await chat.finished()
    await evidence.all_settled(house)
