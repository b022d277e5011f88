"""The pages as a person meets them. Selectors are told here once; tests speak of messages and answers."""

import re
from dataclasses import dataclass, field
from typing import Self

from playwright.async_api import ConsoleMessage, Page, Request, Response, expect

PASSWORD = "a long enough password"


@dataclass
class ChatPage:
    """One tab. It keeps what went wrong in it: errors of scripts, CSP reports, refused and foreign requests.

    `refusals`: the statuses that a story provokes on purpose.
    """

    page: Page
    url: str
    refusals: set[int] = field(default_factory=set)
    trouble: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.trouble.append(f"script error: {error}"))
        self.page.on("request", self._request)
        self.page.on("response", self._response)

    def _console(self, message: ConsoleMessage) -> None:
        # What the browser says of a refused request is known from its answer; a broken one is the line's fault.
        own = "Failed to load resource" not in message.text and "net::ERR" not in message.text
        if message.type == "error" and own:
            self.trouble.append(f"console: {message.text}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.url, "data:", "blob:", "about:")):
            self.trouble.append(f"a request to {request.url}")

    def _response(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self.refusals:
            self.trouble.append(f"{response.status} {response.request.method} {response.url}")

    async def sign_up(self, email: str) -> Self:
        """Fills the form and lands on the chat page."""
        await self.page.goto(f"{self.url}/sign-up")
        await self.page.get_by_label("E-mail").fill(email)
        await self.page.get_by_label("Password", exact=True).fill(PASSWORD)
        await self.page.get_by_role("button", name="Create my assistant").click()
        await self.page.wait_for_url(f"{self.url}/chat")
        return self

    async def sign_in(self, email: str) -> Self:
        """Signs in with what was signed up, and lands on the chat page."""
        await self.page.goto(f"{self.url}/sign-in")
        await self.page.get_by_label("E-mail").fill(email)
        await self.page.get_by_label("Password", exact=True).fill(PASSWORD)
        await self.page.locator("form button.primary").click()
        await self.page.wait_for_url(f"{self.url}/chat")
        return self

    async def become_admin(self, link: str, email: str) -> Self:
        """Uses the one-time link of the first start."""
        await self.page.goto(link)
        await self.page.get_by_label("E-mail").fill(email)
        await self.page.get_by_label("Password", exact=True).fill(PASSWORD)
        await self.page.locator("form button.primary").click()
        await self.page.wait_for_url(re.compile(r"/admin/providers"))
        return self

    async def awake(self) -> None:
        """Returns when the head says that the assistant is awake."""
        await expect(self.page.locator("#instance .words")).to_have_text("Awake", timeout=30_000)

    async def say(self, text: str) -> None:
        """Types and presses Enter; returns when the field is empty again."""
        await self.page.locator("#composer-text").fill(text)
        await self.page.locator("#composer-text").press("Enter")
        await expect(self.page.locator("#composer-text")).to_have_value("", timeout=10_000)

    async def answers(self) -> list[str]:
        """The text of every answer that is shown, tool rows left out."""
        found = self.page.locator("article.message.assistant .answer")
        return [
            "\n".join([await prose.inner_text() for prose in await one.locator(".prose").all()])
            for one in await found.all()
        ]

    async def shows(self, words: str, timeout_s: float = 20) -> None:
        """Returns when the last answer contains `words`."""
        last = self.page.locator("article.message.assistant .answer").last
        await expect(last).to_contain_text(words, timeout=timeout_s * 1000)

    async def finished(self, timeout_s: float = 20) -> None:
        """Returns when no answer is under way."""
        await expect(self.page.locator("#stop")).to_be_hidden(timeout=timeout_s * 1000)

    async def new_conversation(self) -> None:
        """Begins another conversation."""
        await self.page.locator("#new-conversation").click()
        await expect(self.page.locator("article.message")).to_have_count(0)

    @property
    def conversation(self) -> str:
        """The conversation that the address names."""
        return self.page.url.rpartition("/")[2]

    def healthy(self) -> None:
        """Fails if anything went wrong in this tab."""
        assert not self.trouble, self.trouble
