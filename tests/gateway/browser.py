"""A browser without eyes: cookies, forms with their token, fetches as a page of ours sends them."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
from yarl import URL

from infra.kit import sse

HOST = "alcove.test"
ORIGIN = f"http://{HOST}"
PASSWORD = "a reading room of one's own"
_CSRF = re.compile(r'name="csrf-token" content="([0-9a-f]*)"')


@dataclass
class Page:
    """An answer, read to its end."""

    status: int
    headers: Any
    text: str

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return orjson.loads(self.text)

    @property
    def reason(self) -> str | None:
        """The finer word of a coded error."""
        found: str | None = self.json["error"].get("details", {}).get("reason")
        return found

    @property
    def location(self) -> str | None:
        """Where a redirect goes."""
        found: str | None = self.headers.get("location")
        return found


@dataclass
class Stream:
    """An open EventSource: the frames that came so far."""

    response: aiohttp.ClientResponse
    frames: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    ended: bool = False

    @property
    def last_id(self) -> str:
        """What a browser sends as Last-Event-ID."""
        return next((ident for ident, _ in reversed(self.frames) if ident), "")

    def named(self, name: str) -> list[dict[str, Any]]:
        """The CUSTOM frames of this name."""
        return [frame for _, frame in self.frames if frame.get("name") == name]

    def types(self) -> list[str]:
        """Types of the agent's events, in order."""
        return [frame["type"] for _, frame in self.frames if frame["type"] != "CUSTOM"]

    def text(self) -> str:
        """The words that were streamed."""
        deltas = [f["delta"] for _, f in self.frames if f["type"] == "TEXT_MESSAGE_CONTENT"]
        return "".join(deltas)

    async def read(self) -> None:
        """Reads until the server ends it."""
        parser = sse.Parser()
        seen = ""
        try:
            async for chunk in self.response.content.iter_any():
                for event in parser.feed(chunk):
                    fresh, seen = (event.id if event.id != seen else ""), event.id
                    self.frames.append((fresh, orjson.loads(event.data)))
        except aiohttp.ClientError:
            pass
        self.ended = True


class Browser:
    """One browser with its cookies."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.jar = aiohttp.CookieJar(unsafe=True)
        self.session = aiohttp.ClientSession(cookie_jar=self.jar)
        self.csrf = ""

    async def send(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, **options: Any
    ) -> Page:
        """Any request, with the Host header of PUBLIC_URL."""
        given = {"host": HOST, **(headers or {})}
        async with self.session.request(
            method,
            URL(self.url + path, encoded=True),
            headers=given,
            allow_redirects=False,
            **options,
        ) as response:
            raw = await response.read()
            page = Page(response.status, response.headers, raw.decode("utf-8", "replace"))
        found = _CSRF.search(page.text)
        if found:
            self.csrf = found[1]
        return page

    async def visit(self, path: str) -> Page:
        """Opens a page by navigation."""
        return await self.send(
            "GET",
            path,
            headers={
                "accept": "text/html",
                "sec-fetch-site": "none",
                "sec-fetch-mode": "navigate",
                "sec-fetch-dest": "document",
            },
        )

    async def submit(self, path: str, **fields: str) -> Page:
        """Sends a form of ours."""
        data = {"x-csrf-token": self.csrf, **fields}
        headers = {"accept": "text/html", "origin": ORIGIN, "sec-fetch-site": "same-origin"}
        return await self.send("POST", path, headers=headers, data=data)

    async def api(self, method: str, path: str, body: Any = None) -> Page:
        """A fetch by a script of ours."""
        headers = {"sec-fetch-site": "same-origin", "accept": "application/json"}
        if method != "GET":
            headers |= {"origin": ORIGIN, "x-csrf-token": self.csrf}
        options = {} if body is None else {"json": body}
        return await self.send(method, path, headers=headers, **options)

    async def sign_up(self, email: str) -> Page:
        """Makes an account and opens the chat page, whose token later requests carry."""
        await self.visit("/sign-up")
        answer = await self.submit("/sign-up", email=email, password=PASSWORD)
        assert answer.status == 303, answer.text
        return await self.visit("/account")

    async def sign_in(self, email: str, password: str = PASSWORD) -> Page:
        """Signs in; opens a page when it worked."""
        await self.visit("/sign-in")
        answer = await self.submit("/sign-in", email=email, password=password)
        if answer.status == 303:
            await self.visit("/account")
        return answer

    async def post(self, text: str, client_id: str, conversation: str = "c" * 26) -> Page:
        """Posts a message."""
        body = {"client_message_id": client_id, "text": text, "channel": "web", "source": "user"}
        return await self.api("POST", f"/api/conversations/{conversation}/messages", body)

    @asynccontextmanager
    async def stream(self, cursor: str = "", last_event_id: str = "") -> AsyncIterator[Stream]:
        """An EventSource, open while the block runs. It sends no Origin, as browsers do."""
        headers = {"host": HOST, "accept": "text/event-stream", "sec-fetch-site": "same-origin"}
        if last_event_id:
            headers["last-event-id"] = last_event_id
        path = f"/api/stream?cursor={cursor}" if cursor else "/api/stream"
        async with self.session.get(self.url + path, headers=headers) as response:
            assert response.status == 200, await response.text()
            stream = Stream(response)
            reading = asyncio.create_task(stream.read())
            try:
                yield stream
            finally:
                reading.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await reading

    async def close(self) -> None:
        """Closes the browser."""
        await self.session.close()
