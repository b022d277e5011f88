"""A browser for the session's tests, a fresh profile for each, and the house of the journeys."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, async_playwright

from tests.browser.chat_page import ChatPage
from tests.browser.chromium import ARGUMENTS
from tests.journeys.conftest import pytest_runtest_makereport
from tests.journeys.fixtures import agent_image, databases, house, house_settings, runtime
from tests.journeys.house import House

__all__ = [
    "agent_image",
    "databases",
    "house",
    "house_settings",
    "pytest_runtest_makereport",
    "runtime",
]


@pytest.fixture
async def browser(chromium: str) -> AsyncIterator[Browser]:
    """A headless Chromium."""
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        yield started
        await started.close()


@pytest.fixture
async def chat(browser: Browser, house: House) -> AsyncIterator[ChatPage]:
    """A tab of somebody new; the test fails if anything went wrong in it."""
    context = await browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
    page = ChatPage(await context.new_page(), house.url)
    yield page
    await context.close()
    page.healthy()


@pytest.fixture
async def admin(browser: Browser, house: House) -> AsyncIterator[ChatPage]:
    """A tab of the first admin, in a profile of its own."""
    context = await browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
    page = ChatPage(await context.new_page(), house.url)
    await page.become_admin(await house.admin_link(), "admin@example.org")
    yield page
    await context.close()
    page.healthy()
