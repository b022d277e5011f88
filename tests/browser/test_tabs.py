"""Many tabs of one browser, which has six connections to a host for all of them."""

import pytest
from playwright.async_api import Browser

from tests.browser.chat_page import ChatPage
from tests.journeys.house import House

pytestmark = [pytest.mark.browser, pytest.mark.slow]
# A headless browser shows every tab at once; this hides those that a person would not see.
HIDEABLE = "Object.defineProperty(document, 'hidden', {get: () => window.isBehind === true})"
SHOW = (
    "behind => { window.isBehind = behind; document.dispatchEvent(new Event('visibilitychange')) }"
)


async def test_every_tab_loads_and_hears_when_eight_are_opened_and_looked_through(
    browser: Browser, house: House
) -> None:
    context = await browser.new_context()
    await context.add_init_script(HIDEABLE)
    first = ChatPage(await context.new_page(), house.url)
    await first.sign_up("ada@example.org")
    await first.awake()
    tabs = [first]
    for _ in range(7):
        await tabs[-1].page.evaluate(SHOW, True)
        tabs.append(ChatPage(await context.new_page(), house.url))
        await tabs[-1].page.goto(f"{house.url}/chat", timeout=15_000)
        await tabs[-1].awake()
    for before, tab in zip([tabs[-1], *tabs], tabs, strict=False):
        await before.page.evaluate(SHOW, True)
        await tab.page.evaluate(SHOW, False)
        answer = await tab.page.evaluate("fetch('/api/session').then(answer => answer.status)")
        assert answer == 200
    for tab in tabs:
        tab.healthy()
    await context.close()
