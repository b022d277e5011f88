"""A person's side of an agent: posts, reads and follows over its real socket, as the gateway does."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from infra.kit import ids, sse

SECRET = "instance-secret-of-the-test"
Frame = dict[str, Any]


class Answer:
    """Status and JSON of an answer."""

    def __init__(self, status: int, body: Any, headers: dict[str, str]) -> None:
        self.status, self.body, self.headers = status, body, headers


class Person:
    """Speaks to the agent at a socket."""

    def __init__(self, socket: Path, secret: str = SECRET) -> None:
        self._socket, self._secret = socket, secret

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[aiohttp.ClientSession]:
        headers = {"authorization": f"Bearer {self._secret}"}
        connector = aiohttp.UnixConnector(str(self._socket))
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            yield session

    async def ask(self, method: str, path: str, **more: Any) -> Answer:
        """One request."""
        async with (
            self._session() as session,
            session.request(method, f"http://agent{path}", **more) as response,
        ):
            raw = await response.read()
            body = json.loads(raw) if raw else None
            return Answer(response.status, body, dict(response.headers))

    async def say(
        self, text: str, conversation: str | None = None, client_id: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """Posts a message; the receipt."""
        body = {"client_message_id": client_id or ids.ulid(), "text": text, **more.pop("body", {})}
        path = f"/api/conversations/{conversation or ids.ulid()}/messages"
        answer = await self.ask("POST", path, json=body, **more)
        assert answer.status == 202, answer.body
        return dict(answer.body)

    async def messages(self, conversation: str, **query: Any) -> dict[str, Any]:
        """A page of a conversation."""
        path = f"/api/conversations/{conversation}/messages"
        answer = await self.ask("GET", path, params=query)
        assert answer.status == 200, answer.body
        return dict(answer.body)

    async def status(self) -> dict[str, Any]:
        """GET /status."""
        return dict((await self.ask("GET", "/status")).body)

    @asynccontextmanager
    async def stream(self, *, after: int, epoch: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """The open event stream."""
        url = f"http://agent/api/events?epoch={epoch}&after={after}"
        async with self._session() as session, session.get(url) as response:
            assert response.status == 200
            yield response

    async def follow(
        self,
        until: Callable[[Frame], bool],
        *,
        after: int = 0,
        epoch: str | None = None,
        timeout_s: float = 20.0,
    ) -> list[Frame]:
        """Every frame from `after` to the first that `until` accepts."""
        seen: list[Frame] = []
        epoch = epoch or (await self.status())["epoch"]
        async with (
            asyncio.timeout(timeout_s),
            self.stream(after=after, epoch=epoch) as response,
        ):
            parser = sse.Parser()
            async for chunk in response.content.iter_any():
                for event in parser.feed(chunk):
                    frame = json.loads(event.data)
                    assert str(frame["seq"]) == event.id
                    seen.append(frame)
                    if until(frame):
                        return seen
        raise AssertionError(f"the stream ended first: {[f['type'] for f in seen]}")

    async def ended(self, turn_id: str, *, after: int = 0) -> list[Frame]:
        """Every frame up to the end of a turn."""
        return await self.follow(is_end_of(turn_id), after=after)

    async def answer_to(
        self, text: str, conversation: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """Says something and waits for the whole answer: the assistant's message."""
        receipt = await self.say(text, conversation, **more)
        return dict((await self.ended(receipt["turn_id"]))[-1]["message"])


def is_end_of(turn_id: str) -> Callable[[Frame], bool]:
    """Whether a frame is the end of that turn."""
    return lambda f: f["turn_id"] == turn_id and f["type"] in ("RUN_FINISHED", "RUN_ERROR")


def text_of(frames: list[Frame], turn_id: str) -> str:
    """The text that the deltas make, each checked to begin where the one before it ended."""
    text = ""
    for frame in frames:
        if frame["turn_id"] == turn_id and frame["type"] == "TEXT_MESSAGE_CONTENT":
            assert frame["offset"] == len(text), "a gap or a doubled word"
            text += frame["delta"]
    return text
