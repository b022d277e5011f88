"""The preview on loopback and a real Chromium in front of it."""

import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from gateway.pages.environment import DIST
from tests.browser.chromium import ARGUMENTS
from tests.missing import lacks
from tests.pages.preview.api import ASSISTANT, SCENE
from tests.pages.preview.assistant import Assistant
from tests.pages.preview.server import create_app


@dataclass
class Preview:
    """Where the preview listens, and the assistant and the scene that a test may change."""

    url: str
    app: web.Application

    @property
    def assistant(self) -> Assistant:
        """The scripted assistant."""
        return self.app[ASSISTANT]

    def refuse(self, status: int, code: str, message: str) -> None:
        """Every message is refused like this from now on; status 0 ends it."""
        self.app[SCENE]["refuse"] = (status, code, message) if status else None


@pytest.fixture(scope="session")
def built() -> None:
    """The built pages."""
    if not (DIST / "manifest.json").exists():
        lacks("the pages are not built", "make pages")


@pytest.fixture(scope="session")
def node() -> str:
    """Node, with the packages of package.json beside it."""
    found = shutil.which("node")
    if not found or not (DIST.parents[2] / "node_modules" / "marked").exists():
        lacks("no Node.js with the pages' packages", "make pages (Node.js ≥ 20)")
    return found


@pytest.fixture(scope="session")
def axe(node: str) -> str:
    """The source of axe, which judges a page's accessibility from inside."""
    return (DIST.parents[2] / "node_modules" / "axe-core" / "axe.min.js").read_text()


@pytest_asyncio.fixture(loop_scope="module")
async def preview(built: None) -> AsyncIterator[Preview]:
    """The preview with a quick assistant."""
    app = create_app(pace_s=0.004)
    app[SCENE]["slow"] = 0.2
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    yield Preview(f"http://127.0.0.1:{port}", app)
    app[ASSISTANT].close()
    await runner.cleanup()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    """A headless Chromium for the tests of one file; each has a profile of its own."""
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        yield started
        await started.close()


@dataclass
class Tab:
    """One page; what went wrong in it is kept and judged when the test ends."""

    page: Page
    context: BrowserContext
    url: str
    trouble: list[str] = field(default_factory=list)

    async def go(self, path: str) -> Page:
        """Opens a page of the preview."""
        await self.page.goto(self.url + path)
        return self.page

    async def say(self, text: str) -> None:
        """Types a message and presses Enter."""
        await self.page.locator("#composer-text").fill(text)
        await self.page.locator("#composer-text").press("Enter")

    async def finished(self) -> None:
        """Returns when the last answer has ended."""
        last = self.page.locator("article.message.assistant").last
        await expect(last.locator(".meta")).to_be_attached(timeout=15_000)


@pytest_asyncio.fixture(loop_scope="module")
async def tab(browser: Browser, preview: Preview) -> AsyncIterator[Tab]:
    """A tab whose scripts, CSP reports and requests to strangers fail the test."""
    context = await browser.new_context(
        viewport={"width": 1280, "height": 800}, locale="en-GB", timezone_id="Europe/Stockholm"
    )
    made = Tab(await context.new_page(), context, preview.url)
    made.page.on("pageerror", lambda error: made.trouble.append(f"script error: {error}"))
    made.page.on(
        "console",
        lambda m: (
            made.trouble.append(m.text)
            if m.type == "error" and "Failed to load resource" not in m.text
            else None
        ),
    )
    made.page.on(
        "request",
        lambda r: (
            made.trouble.append(r.url) if not r.url.startswith((preview.url, "data:")) else None
        ),
    )
    yield made
    await context.close()
    assert made.trouble == []
