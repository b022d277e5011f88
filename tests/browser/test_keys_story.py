"""A person's keys, from page to ledger: a program that uses their plan, and calls that they pay themselves."""

import openai
import pytest
from playwright.async_api import expect

from tests import scripted as s
from tests.browser.chat_page import ChatPage
from tests.journeys import evidence
from tests.journeys.house import House

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ADA, OWN = "ada@example.org", "sk-ada-pays-herself-x7Qd"


async def test_program_uses_the_plan_with_a_key_from_the_page_until_it_is_ended(
    house: House, scripted: s.ScriptedProvider, chat: ChatPage
) -> None:
    page = chat.page
    await chat.sign_up(ADA)
    await page.goto(f"{house.url}/account/keys")
    await page.get_by_label("What is it for?").fill("Notebook")
    await page.get_by_role("button", name="Make the key").click()
    key = await page.locator("#fresh-key").input_value()
    scripted.then(s.last_contains("from a program"), reply=s.text("To a program."))
    program = openai.AsyncOpenAI(api_key=key, base_url=f"{house.url}/v1", max_retries=0)
    asked = [{"role": "user", "content": "Hello from a program"}]
    async with program:
        said = await program.chat.completions.create(model="default", messages=asked)  # type: ignore[arg-type]
        assert said.choices[0].message.content == "To a program."
        await evidence.all_settled(house)
        tenant = await evidence.tenant_of(house, ADA)
        rows = await evidence.rows(house, "metering_proxy", "SELECT account, payer FROM entry")
        assert [(row["account"], row["payer"]) for row in rows] == [(tenant, "operator")]
        await page.goto(f"{house.url}/account/keys")
        assert key not in await page.content()
        await page.locator("[data-open^=revoke-]").click()
        await page.locator("dialog[open]").get_by_role("button", name="End it").click()
        await expect(page.locator("main")).to_contain_text("works no longer")
        with pytest.raises(openai.AuthenticationError):
            await program.chat.completions.create(model="default", messages=asked)  # type: ignore[arg-type]


async def test_answers_are_paid_by_the_person_once_their_own_key_has_passed(
    house: House, scripted: s.ScriptedProvider, chat: ChatPage
) -> None:
    page = chat.page
    scripted.canaries = (OWN,)
    await chat.sign_up(ADA)
    await page.goto(f"{house.url}/account/keys")
    await page.locator("[data-open^=own-]").first.click()
    await page.locator("dialog[open] [name=key]").fill(OWN)
    await page.locator("dialog[open]").get_by_role("button", name="Test and use it").click()
    await expect(page.locator("main")).to_contain_text("You pay here")
    assert OWN not in await page.content()
    await page.goto(f"{house.url}/chat")
    await chat.awake()
    scripted.then(s.last_contains("who pays"), reply=s.text("You do."))
    await chat.say("Tell me who pays")
    await chat.shows("You do.")
    await chat.finished()
    assert scripted.requests[-1].headers["authorization"] == f"Bearer {OWN}"
    await evidence.all_settled(house)
    [row] = await evidence.rows(house, "metering_proxy", "SELECT payer, charge_nanos FROM entry")
    assert (row["payer"], row["charge_nanos"]) == ("tenant", 0)
    await page.goto(f"{house.url}/usage")
    await expect(page.locator("main")).to_contain_text("What did you pay yourself?")
    await expect(page.locator("#quota-title")).to_be_visible()
    await expect(page.locator(".quota-line strong")).to_contain_text("$0 of $1.00")
