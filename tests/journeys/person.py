"""Somebody who uses the house, without a browser: signs up, writes, listens to the tab's one stream."""

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self

import aiohttp

from infra.kit import ids, sse
from tests.waiting import stretch, until

ENDINGS = ("RUN_FINISHED", "RUN_ERROR")


@dataclass
class Tab:
    """An open page: every event of its stream, in the order of arrival, and the last cursor.

    As the real page does, it fetches the messages when the stream says that its log begins anew
    (`log.reset`), and goes on from there: `snapshots` are messages by turn, as of a number.
    """

    events: list[dict[str, Any]] = field(default_factory=list)
    cursor: str = ""
    opened: int = 0
    snapshots: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)

    def named(self, name: str) -> list[dict[str, Any]]:
        """Events of a type, or custom events of a name."""
        return [e for e in self.events if name in (e.get("type"), e.get("name"))]

    def text(self, turn_id: str) -> str:
        """The words of one turn's answer as this tab put them together; asserts that none overlap."""
        as_of, message = self.snapshots.get(turn_id, (0, {}))
        shown = str(message.get("text", ""))
        for event in self.named("TEXT_MESSAGE_CONTENT"):
            if event["turn_id"] == turn_id and event["seq"] > as_of:
                assert event["offset"] == len(shown), f"a word is lost or doubled at {event}"
                shown += event["delta"]
        return shown

    def ending(self, turn_id: str) -> dict[str, Any] | None:
        """The event that ended the turn, or what a snapshot says in its place; at most one."""
        found = [e for e in self.events if e.get("type") in ENDINGS and e["turn_id"] == turn_id]
        assert len(found) <= 1, f"a turn ended {len(found)} times"
        _, message = self.snapshots.get(turn_id, (0, {}))
        if found or message.get("state", "streaming") == "streaming":
            return found[0] if found else None
        error = message.get("error") or {}
        kind = "RUN_ERROR" if error else "RUN_FINISHED"
        return {"type": kind, "retryable": True, **error, "message": message}

    async def ended(self, turn_id: str, timeout_s: float = 20.0) -> dict[str, Any]:
        """The turn's ending, once it is here."""
        return await until(
            lambda: self.ending(turn_id), timeout_s=timeout_s, what=f"the end of turn {turn_id}"
        )

    async def says(self, turn_id: str, words: str, timeout_s: float = 20.0) -> None:
        """Returns when the answer so far contains `words`."""
        await until(
            lambda: words in self.text(turn_id), timeout_s=timeout_s, what=f"the words {words!r}"
        )


class Person:
    """One account in one browser (a cookie jar)."""

    def __init__(self, url: str, email: str | None = None) -> None:
        self.url = url
        self.email = email or f"{secrets.token_hex(4)}@example.org"
        self.password = "a long enough password"
        self.csrf = ""
        self._session = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the browser."""
        await self._session.close()

    async def sign_up(self) -> Self:
        """Makes the account, as the form does."""
        status = await self.submit("/sign-up", email=self.email, password=self.password)
        assert status == 303, f"sign-up answered {status}"
        return await self._signed_in()

    async def sign_in(self) -> Self:
        """Signs in with what was signed up."""
        status = await self.submit("/sign-in", email=self.email, password=self.password, next="")
        assert status == 303, f"sign-in answered {status}"
        return await self._signed_in()

    async def become_admin(self, link: str) -> Self:
        """Uses a one-time link."""
        path = link.removeprefix(self.url)
        status = await self.submit(path, email=self.email, password=self.password)
        assert status == 303, f"the admin link answered {status}"
        return await self._signed_in()

    async def submit(self, path: str, **fields: str) -> int:
        """Posts the form of the page at `path` with its hidden token; the status."""
        page = await self.page(path)
        hidden = re.search(r'name="x-csrf-token"[^>]*value="([^"]*)"', page)
        meta = re.search(r'name="csrf-token"[^>]*content="([^"]*)"', page)
        found = hidden or meta
        assert found is not None, f"no token on {path}:\n{page[:500]}"
        return await self.post_form(path, found.group(1), **fields)

    async def post_form(self, path: str, csrf: str, **fields: str) -> int:
        """Posts a form; the status."""
        form = {"x-csrf-token": csrf, **fields}
        async with self._session.post(
            self.url + path, data=form, headers={"origin": self.url}, allow_redirects=False
        ) as response:
            await response.read()
            return response.status

    async def page(self, path: str) -> str:
        """The HTML at `path`."""
        async with self._session.get(self.url + path) as response:
            return await response.text()

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """A script's request: status and JSON."""
        headers = {"origin": self.url, "x-csrf-token": self.csrf}
        async with self._session.request(
            method, self.url + path, json=body, headers=headers, allow_redirects=False
        ) as response:
            raw = await response.read()
            kind = response.headers.get("content-type", "")
            return response.status, json.loads(raw) if raw and "json" in kind else None

    async def say(
        self, text: str, conversation: str, client_message_id: str | None = None
    ) -> dict[str, Any]:
        """Sends a message; the answer's JSON (`state` is `waiting` while the agent wakes)."""
        body = {
            "client_message_id": client_message_id or ids.ulid(),
            "text": text,
            "channel": "web",
            "source": "user",
        }
        status, answer = await self.call(
            "POST", f"/api/conversations/{conversation}/messages", body
        )
        assert status == 202, f"the message was answered {status}: {answer}"
        assert isinstance(answer, dict)
        return answer

    async def answered(self, conversation: str, times: int, timeout_s: float = 40.0) -> None:
        """Returns when so many answers of the conversation have ended."""

        async def there() -> bool:
            path = f"/api/conversations/{conversation}/messages"
            status, answer = await self.call("GET", path)
            found = answer["messages"] if status == 200 else []
            states = [m["state"] for m in found if m["role"] == "assistant"]
            return len(states) == times and "streaming" not in states

        await until(there, timeout_s=timeout_s, what=f"{times} answers")

    async def messages(self, conversation: str) -> list[dict[str, Any]]:
        """What the conversation holds, oldest first."""
        status, answer = await self.call("GET", f"/api/conversations/{conversation}/messages")
        assert status == 200, f"the messages were answered {status}: {answer}"
        found: list[dict[str, Any]] = answer["messages"]
        return found

    async def wake(self) -> None:
        """Opens the chat page and returns when the agent is ready."""

        async def ready() -> bool:
            status, instance = await self.call("POST", "/api/wake", {"reason": "page"})
            return status in (200, 202) and instance["state"] == "ready"

        await until(ready, timeout_s=30, what="the agent's readiness")

    @asynccontextmanager
    async def tab(self, tab: Tab | None = None) -> AsyncIterator[Tab]:
        """An open stream that reconnects as EventSource does, from its last cursor, while the block runs."""
        tab = tab if tab is not None else Tab()
        listening = asyncio.create_task(self._listen(tab))
        try:
            await until(lambda: tab.opened > 0, what="the stream's beginning")
            yield tab
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _listen(self, tab: Tab) -> None:
        while True:
            with suppress(aiohttp.ClientError, TimeoutError):
                await self._once(tab)
            await stretch(0.05)  # a browser waits a second here; a test need not

    async def _once(self, tab: Tab) -> None:
        headers = {"accept": "text/event-stream", "sec-fetch-site": "same-origin"}
        if tab.cursor:
            headers["last-event-id"] = tab.cursor
        timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
        async with self._session.get(
            f"{self.url}/api/stream", headers=headers, timeout=timeout
        ) as response:
            if response.status != 200:
                return
            tab.opened += 1
            parser = sse.Parser()
            async for chunk in response.content.iter_any():
                for event in parser.feed(chunk):
                    tab.cursor = event.id or tab.cursor
                    frame = json.loads(event.data)
                    tab.events.append(frame)
                    if frame.get("name") == "log.reset":
                        await self._look(tab)

    async def _look(self, tab: Tab) -> None:
        """Fetches every conversation, as the page fetches the one that it shows."""
        status, listed = await self.call("GET", "/api/conversations")
        for conversation in listed["conversations"] if status == 200 else []:
            path = f"/api/conversations/{conversation['id']}/messages"
            status, page = await self.call("GET", path)
            if status == 200:
                for message in page["messages"]:
                    if message["role"] == "assistant":
                        tab.snapshots[message["turn_id"]] = (page["seq"], message)

    async def _signed_in(self) -> Self:
        status, session = await self.call("GET", "/api/session")
        assert status == 200, f"not signed in: {status}"
        self.csrf = session["csrf"]
        return self
