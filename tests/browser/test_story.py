"""From sign-up to the bill, in a real browser: each step is seen on the page and found in the databases."""

import re

import pytest
from playwright.async_api import expect

from infra.kit import money
from tests import scripted as s
from tests.browser.chat_page import ChatPage
from tests.journeys import evidence
from tests.journeys.fixtures import ON_BOTH
from tests.journeys.house import House

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ADA = "ada@example.org"


async def last_turn(house: House, tenant: str) -> str:
    """The id of the newest turn in the agent's database."""
    [row] = evidence.agent_rows(house, tenant, "SELECT id FROM turn ORDER BY ordinal DESC LIMIT 1")
    return str(row["id"])


async def test_answer_goes_on_when_the_page_is_reloaded_in_its_middle(
    house: House, scripted: s.ScriptedProvider, chat: ChatPage
) -> None:
    gate, then = s.Gate(), s.Gate()
    scripted.then(
        s.last_contains("sea"),
        reply=s.text("The sea ", "is ", gate, "wide ", then, "and grüß 🌍 deep."),
    )
    await chat.sign_up(ADA)
    waking = chat.page.get_by_label("Your assistant is waking up").locator("li")
    await expect(waking).to_have_count(4)
    await chat.say("Tell me about the sea")  # while it wakes
    await chat.awake()
    await gate.reached()
    await chat.shows("The sea is")
    await chat.page.reload()
    await chat.shows("The sea is")
    gate.open()
    await then.reached()
    await chat.shows("The sea is wide")
    await chat.page.reload()
    then.open()
    await chat.shows("deep.")
    await chat.finished()
    tenant = await evidence.tenant_of(house, ADA)
    logged = evidence.text_in_log(house, tenant, await last_turn(house, tenant))
    assert await chat.answers() == [logged] == ["The sea is wide and grüß 🌍 deep."]
    await expect(chat.page.locator("article.message.user")).to_have_count(1)
    [entry] = await evidence.entries(house, tenant)
    assert entry["outcome"] == "complete"
    await evidence.all_settled(house)


async def test_stop_keeps_the_part_when_pressed_in_the_middle(
    house: House, scripted: s.ScriptedProvider, chat: ChatPage
) -> None:
    gate = s.Gate()
    scripted.then(s.last_contains("count"), reply=s.text("one ", "two ", gate, "three"))
    await chat.sign_up(ADA)
    await chat.awake()
    await chat.say("count for me")
    await gate.reached()
    await chat.shows("one two")
    await chat.page.locator("#stop").click()
    await expect(chat.page.locator(".ending")).to_contain_text("You stopped this answer")
    gate.open()
    await chat.page.reload()
    await chat.shows("one two")
    await expect(chat.page.locator(".ending")).to_contain_text("You stopped this answer")
    tenant = await evidence.tenant_of(house, ADA)
    [row] = evidence.agent_rows(
        house, tenant, "SELECT text, state FROM message WHERE role = 'assistant'"
    )
    assert (row["text"].strip(), row["state"]) == ("one two", "stopped")
    assert [a.strip() for a in await chat.answers()] == ["one two"]
    await evidence.all_settled(house)


async def test_second_conversation_remembers_and_tools_are_rows(
    house: House, scripted: s.ScriptedProvider, chat: ChatPage
) -> None:
    scripted.then(s.last_contains("My name is Ada"), reply=s.text("Hello Ada."))
    knows = s.that(
        "knows the name from another conversation",
        lambda r: "Name: Ada" in r.last_text + r.system and len(r.messages) <= 2,
    )
    scripted.then(
        s.last_contains("write down"),
        knows,
        s.has_tool("save_note"),
        reply=s.calls("I will. ", s.call("save_note", title="Milk", text="buy milk")),
    )
    scripted.then(s.has_result("Saved as"), reply=s.text("It is noted."))
    await chat.sign_up(ADA)
    await chat.awake()
    await chat.say("My name is Ada.")
    await chat.shows("Hello Ada.")
    await chat.finished()
    first = chat.conversation
    await chat.new_conversation()
    await chat.say("Please write down that I need milk")
    row = chat.page.locator("details.tool")
    await expect(row).to_have_count(1)
    await expect(row).to_contain_text("Saving a note")
    await chat.shows("It is noted.")
    await chat.finished()
    assert chat.conversation != first
    await row.locator("summary").click()
    await expect(row).to_contain_text("buy milk")
    tenant = await evidence.tenant_of(house, ADA)
    [note] = evidence.agent_rows(house, tenant, "SELECT title, text FROM note")
    assert note == {"title": "Milk", "text": "buy milk"}
    await expect(chat.page.locator("#conversations a")).to_have_count(2)
    await chat.page.reload()
    await expect(chat.page.locator("details.tool")).to_have_count(1)
    await evidence.all_settled(house)


@ON_BOTH
async def test_quota_runs_out_and_chat_goes_on_when_the_admin_raises_it(
    house: House, scripted: s.ScriptedProvider, chat: ChatPage, admin: ChatPage
) -> None:
    # 3 and 15 dollars a million tokens: this one answer costs 0.99 of the free plan's dollar and a little more.
    scripted.then(s.last_contains("dear"), reply=s.text("Here it is.").using(180_000, 31_000))
    scripted.then(s.last_contains("one more"), reply=s.text("With pleasure."))
    await chat.sign_up(ADA)
    await chat.awake()
    await chat.say("something dear")
    await chat.shows("Here it is.")
    await chat.finished()
    card = chat.page.locator(".card.limit")
    await expect(card).to_contain_text("This month's quota is used up")
    await expect(card.locator("time")).to_have_count(1)
    draft = chat.page.locator("#composer-text")
    await draft.fill("one more, please")
    await draft.press("Enter")
    await expect(chat.page.locator("[role=alert]")).to_contain_text(
        ["This month's quota is used up"]
    )
    await expect(draft).to_have_value("one more, please")
    tenant = await evidence.tenant_of(house, ADA)
    assert len(evidence.agent_rows(house, tenant, "SELECT id FROM turn")) == 1
    assert len(scripted.model_requests) == 1
    [entry] = await evidence.entries(house, tenant)
    assert entry["charge_nanos"] == entry["cost_nanos"] == 180_000 * 3_000 + 31_000 * 15_000

    await admin.page.goto(f"{house.url}/admin/tenants/{tenant}")
    quota = admin.page.locator("dialog#quota")
    await admin.page.locator("[data-open=quota]").click()
    await quota.locator("[name=limit_usd]").fill("5.00")
    await quota.locator("[name=reason]").fill("a good customer")
    await quota.get_by_role("button", name="Change the quota").click()
    await expect(admin.page.locator(".audit")).to_contain_text("a good customer")
    await expect(card).to_have_count(0, timeout=20_000)
    await expect(draft).to_have_value("one more, please")
    await draft.press("Enter")
    await chat.shows("With pleasure.")
    await chat.finished()
    await evidence.all_settled(house)
    await _pages_equal_the_ledger(house, chat, admin, tenant)


async def _pages_equal_the_ledger(
    house: House, chat: ChatPage, admin: ChatPage, tenant: str
) -> None:
    entries = await evidence.entries(house, tenant)
    assert len(entries) == 2
    charge = money.format_usd(sum(entry["charge_nanos"] for entry in entries))
    tokens = f"{sum(entry['input_tokens'] for entry in entries):,}"
    await chat.page.goto(f"{house.url}/usage")
    sums = chat.page.locator("section[aria-labelledby=sums-title] tbody tr")
    for day_or_month in (sums.nth(0), sums.nth(1)):
        await expect(day_or_month).to_contain_text(charge)
        await expect(day_or_month).to_contain_text(tokens)
    models = chat.page.locator("main table").filter(has_text=str(entries[0]["model"]))
    await expect(models.first).to_contain_text(charge)
    await admin.page.goto(f"{house.url}/admin/tenants?q=ada")
    await expect(admin.page.locator("main")).to_contain_text(ADA)
    await expect(admin.page.locator("main")).to_contain_text(charge)
    await admin.page.goto(f"{house.url}/admin/spend?days=7")
    await expect(admin.page.locator("main")).to_contain_text(charge)


async def test_admin_pages_are_closed_when_the_person_is_no_admin(
    house: House, chat: ChatPage
) -> None:
    chat.refusals = {403, 404}
    await chat.sign_up(ADA)
    for path in ("/admin", "/admin/tenants", "/admin/spend", "/admin/providers", "/admin/host"):
        response = await chat.page.goto(house.url + path)
        assert response is not None
        assert response.status in (403, 404), path
        assert not re.search(r"tenants|providers", await chat.page.locator("h1").inner_text(), re.I)
    assert (await evidence.rows(house, "gateway", "SELECT is_admin FROM account"))[0][
        "is_admin"
    ] in (
        0,
        False,
    )
