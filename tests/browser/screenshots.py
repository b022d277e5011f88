"""`make screenshots`: pictures of the real pages of a real house, both themes, 1440 and 390 px wide.

Written to docs/screenshots/<page>-<theme>-<width>.png. To be looked at by a person after each run.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, Page, async_playwright, expect

from infra.kit import ids
from tests import scripted as s
from tests.browser.chat_page import ChatPage
from tests.browser.chromium import ARGUMENTS, path
from tests.journeys import evidence
from tests.journeys.house import House, sqlite_databases
from tests.journeys.person import Person

TARGET = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
SIZES = {1440: 900, 390: 844}
THEMES = ("light", "dark")
ANSWER = """Three things make a good reading corner:

1. **Light** from the side you do not write with.
2. A chair that you can sit in *two ways*.
3. A shelf within reach, and nothing that rings.

```python
def evening(book, tea):
    while tea:
        yield book.next_page()
```

I wrote the list into your notes, so that it is there tomorrow."""


NOTE = s.call("save_note", title="Reading corner", text="light, chair, shelf")
NEIGHBOURS = {"bo@example.org": 14_000, "chen@example.org": 52_000, "dolores@example.org": 3_100}


async def main() -> int:
    """Takes every picture; the exit code."""
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="alcove-pictures-") as name:
        root = Path(name)
        async with s.serve(s.ScriptedProvider(models=("claude-sonnet-4-5",))) as provider:
            house = House(root / "house", "pictures", sqlite_databases(root))
            try:
                await house.start()
                async with async_playwright() as playwright:
                    browser = await playwright.chromium.launch(
                        executable_path=path(), args=list(ARGUMENTS)
                    )
                    await _all(house, provider, browser)
                    await browser.close()
            finally:
                await house.close()
    print(f"{len(list(TARGET.glob('*.png')))} pictures in {TARGET}")
    return 0


async def _all(house: House, provider: s.ScriptedProvider, browser: Browser) -> None:
    ada, admin = await _tab(browser, house), await _tab(browser, house)
    await _picture(ada.page, "sign-up", lambda: ada.page.goto(f"{house.url}/sign-up"))
    await admin.become_admin(await house.admin_link(), "keeper@example.org")
    await admin.page.goto(f"{house.url}/admin/providers/new?kind=openai")
    await _picture(admin.page, "connect-a-provider")
    await house.connect(provider, name="Anthropic")
    await _neighbours(house, provider)
    await ada.sign_up("ada@example.org")
    await expect(ada.page.get_by_label("Your assistant is waking up")).to_be_visible()
    with house.hanging("spawner"):
        await _picture(ada.page, "waking")
    await ada.awake()
    provider.then(
        s.has_tools,
        reply=s.calls(NOTE).using(1_900, 60),
    )
    provider.then(
        s.has_result("Saved"), reply=s.text(*ANSWER.splitlines(keepends=True)).using(2_100, 420)
    )
    await ada.say("How do I make a good reading corner? Please note it down.")
    await ada.shows("tomorrow")
    await ada.finished()
    await _picture(ada.page, "chat")
    await _keys(house, provider, ada)
    tenant = await evidence.tenant_of(house, "ada@example.org")
    await _at_the_limit(house, provider, ada)
    await _credit(house, admin, tenant)
    await _picture(ada.page, "usage", lambda: ada.page.goto(f"{house.url}/usage"))
    await _picture(ada.page, "account", lambda: ada.page.goto(f"{house.url}/account"))
    await _chain(house, admin)
    for name in (
        "tenants",
        "spend",
        "requests",
        "providers",
        "fallbacks",
        "prices",
        "audit",
        "host",
    ):
        await admin.page.goto(f"{house.url}/admin/{name}")
        await _picture(admin.page, f"admin-{name}")
    await admin.page.goto(f"{house.url}/admin/requests?q=ada@example.org")
    await admin.page.locator("tbody .name a").first.click()
    await _picture(admin.page, "admin-request")
    await admin.page.goto(f"{house.url}/admin/tenants/{tenant}")
    await _picture(admin.page, "admin-tenant")
    await _new_password(house, admin, ada)


async def _keys(house: House, provider: s.ScriptedProvider, ada: ChatPage) -> None:
    """Ada brings a key of her own, and makes one for her notebook."""
    page = ada.page
    await page.goto(f"{house.url}/account/keys")
    await page.locator("[data-open^=own-]").first.click()
    await page.locator("dialog[open] [name=key]").fill("sk-ada-pays-herself-x7Qd")
    await page.locator("dialog[open] button.primary").click()
    await expect(page.locator("main")).to_contain_text("You pay here")
    await page.get_by_label("What is it for?").fill("Notebook on my laptop")
    await page.get_by_role("button", name="Make the key").click()
    await expect(page.get_by_label("Key", exact=True).first).to_be_visible()
    await _picture(page, "keys")
    await page.goto(f"{house.url}/chat")
    await ada.awake()
    provider.then(s.last_contains("thanks"), reply=s.text("Gladly.").using(2_300, 12))
    await ada.say("Many thanks")
    await ada.shows("Gladly")
    await page.goto(f"{house.url}/account/keys")
    await page.locator("[data-open$=-remove]").click()
    await page.locator("dialog[open] button.danger").click()


async def _credit(house: House, admin: ChatPage, tenant: str) -> None:
    """The keeper gives Ada five dollars."""
    page = admin.page
    await page.goto(f"{house.url}/admin/tenants/{tenant}")
    await page.locator("[data-open=grant]").click()
    await page.locator("dialog[open] [name=amount_usd]").fill("5.00")
    await page.locator("dialog[open] [name=note]").fill("For the lost afternoon")
    await page.locator("dialog[open] [name=last_day]").fill("2099-12-31")
    await page.locator("dialog[open] [name=reason]").fill("Promised by mail")
    await page.locator("dialog[open] button.primary").click()
    await expect(page.locator("main")).to_contain_text("The credit is given.")


async def _chain(house: House, admin: ChatPage) -> None:
    page = admin.page
    await page.goto(f"{house.url}/admin/fallbacks")
    await page.locator("[name=name]").fill("best")
    await page.locator("textarea[name=targets]").fill("anthropic/claude-sonnet-4-5")
    await page.get_by_role("button", name="Save the chain").click()
    await expect(page.locator(".rows")).to_contain_text("best")


async def _new_password(house: House, admin: ChatPage, ada: ChatPage) -> None:
    await admin.page.locator("[data-open=password]").click()
    await admin.page.locator("dialog[open] [name=reason]").fill("Called from her own number")
    await admin.page.locator("dialog[open] button.primary").click()
    link = await admin.page.get_by_label("Link", exact=True).input_value()
    await _picture(admin.page, "admin-password-link")
    await ada.page.goto(link)
    await _picture(ada.page, "new-password")


async def _neighbours(house: House, provider: s.ScriptedProvider) -> None:
    """Others of the house, so that tables have rows."""
    for email, tokens in NEIGHBOURS.items():
        provider.then(s.last_contains("good day"), reply=s.text("And to you.").using(tokens, 900))
        async with Person(house.url, email) as person:
            await person.sign_up()
            await person.wake()
            async with person.tab() as tab:
                await tab.ended((await person.say("good day", ids.ulid()))["turn_id"])


async def _at_the_limit(house: House, provider: s.ScriptedProvider, ada: ChatPage) -> None:
    provider.then(
        s.last_contains("longer"), reply=s.text("Here is the long version.").using(150_000, 36_000)
    )
    await ada.page.goto(f"{house.url}/chat")
    await ada.awake()
    await ada.say("Now make it longer")
    await ada.shows("long version")
    await expect(ada.page.locator(".card.limit")).to_be_visible(timeout=20_000)
    await ada.page.locator("#composer-text").fill("A draft that stays while the quota is out")
    await _picture(ada.page, "at-the-limit")


async def _tab(browser: Browser, house: House) -> ChatPage:
    context = await browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-GB")
    return ChatPage(await context.new_page(), house.url)


async def _picture(
    page: Page, name: str, first: Callable[[], Awaitable[object]] | None = None
) -> None:
    if first is not None:
        await first()
    for theme in THEMES:
        scheme: Literal["dark", "light"] = "dark" if theme == "dark" else "light"
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for width, height in SIZES.items():
            await page.set_viewport_size({"width": width, "height": height})
            await page.screenshot(path=TARGET / f"{name}-{theme}-{width}.png")
    await page.set_viewport_size({"width": 1440, "height": SIZES[1440]})
    await page.emulate_media(color_scheme="light")


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
