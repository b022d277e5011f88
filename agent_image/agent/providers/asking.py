"""Asking the model: the right wire, and another try where one may help. Nothing here knows of turns."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from urllib.parse import unquote

from agent.errors import ModelError, broken, pause_s, refused
from agent.providers.anthropic_messages import AnthropicMessages
from agent.providers.http import Client, Response
from agent.providers.models import Model, Models
from agent.providers.openai_chat import OpenAIChat
from agent.providers.wire import Assembler, Prompt, Reply, Wire
from infra.kit.sse import Parser

log = logging.getLogger(__name__)

RETRIES = 2
# The meter keeps the place of a call whose process died for its lease of a minute.
_PLACE_PAUSE_S, _PLACE_PAUSES = 3.0, 25
Pause = Callable[[float], Awaitable[None]]
_WIRES: dict[str, Wire] = {"openai": OpenAIChat(), "anthropic": AnthropicMessages()}


class Asking:
    """Streams answers of the model through the meter."""

    def __init__(self, client: Client, models: Models, pause: Pause) -> None:
        self._client = client
        self.models = models
        self._pause = pause
        self._open = 0
        self._ended = 0
        self._changed = asyncio.Condition()

    async def model(self, headers: dict[str, str]) -> Model:
        """The model to ask. Raises ModelError; a network that is briefly away is tried again."""
        for attempt in range(RETRIES + 1):
            try:
                return await self.models.default(headers)
            except ModelError as error:
                await self._wait_or_raise(error, attempt)
        raise AssertionError("the last attempt raises")

    async def answer(
        self, model: Model, prompt: Prompt, headers: dict[str, str], *, may_be_empty: bool = False
    ) -> AsyncGenerator[str | Reply, None]:
        """The answer's text, piece by piece, and at the end the whole Reply.

        `may_be_empty`: something was said before, so that an answer without a word is one.
        At most two more tries, with jitter, honouring `retry-after`, and none once a word was
        shown: a person must not see an answer begin twice. For a place among the plan's concurrent
        calls it waits up to 75 s. Raises ModelError.
        """
        attempt = pauses = 0
        while True:
            shown = False
            try:
                async with contextlib.aclosing(self._once(model, prompt, headers)) as parts:
                    async for part in parts:
                        if isinstance(part, Reply) and part.is_empty and not may_be_empty:
                            raise broken("empty_answer")
                        shown = True
                        yield part
                return
            except ModelError as error:
                if shown:
                    raise
                if error.reason == "concurrent_calls" and pauses < _PLACE_PAUSES:
                    pauses += 1
                    if not await self._another_ended():
                        await self._pause(_PLACE_PAUSE_S)
                    continue
                await self._wait_or_raise(error, attempt)
                attempt += 1

    async def _wait_or_raise(self, error: ModelError, attempt: int) -> None:
        pause_time_s = pause_s(error, attempt)
        if pause_time_s is None or attempt >= RETRIES:
            raise error
        log.info("the model is asked again", extra={"code": error.code, "reason": error.reason})
        await self._pause(pause_time_s)

    async def _another_ended(self) -> bool:
        """Waits for the end of another call of this agent; False where none is open.

        A plan allows a few calls at once, and the agent's own conversations may be those few.
        """
        if self._open == 0:
            return False
        before = self._ended
        async with self._changed:
            await self._changed.wait_for(lambda: self._ended > before)
        return True

    async def _once(
        self, model: Model, prompt: Prompt, headers: dict[str, str]
    ) -> AsyncGenerator[str | Reply, None]:
        wire = _WIRES.get(model.wire, _WIRES["openai"])
        sent = {**headers, **wire.headers(self.models.key())}
        body = wire.body(prompt, model.id)
        async with self._client.request("POST", wire.path, sent, body) as response:
            if response.status != 200:
                raise refused(response.status, response.headers, await response.body())
            async with self._counted():
                assembler = wire.assembler()
                async with contextlib.aclosing(_texts(response, assembler)) as texts:
                    async for text in texts:
                        yield text
                reply = assembler.reply()
        clamped = response.headers.get("x-alcove-clamped-to", "")
        reply.clamped_to = int(clamped) if clamped.isdigit() else None
        reply.model = unquote(response.headers.get("x-alcove-model", ""))
        yield reply

    @contextlib.asynccontextmanager
    async def _counted(self) -> AsyncIterator[None]:
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            self._ended += 1
            async with self._changed:
                self._changed.notify_all()


async def _texts(response: Response, assembler: Assembler) -> AsyncGenerator[str, None]:
    if "event-stream" not in response.headers.get("content-type", ""):
        for text in assembler.whole(await response.body(limit_bytes=8 << 20)):
            yield text
        return
    parser = Parser()
    async with contextlib.aclosing(response.pieces()) as pieces:
        async for piece in pieces:
            for event in parser.feed(piece):
                for text in assembler.feed(event):
                    yield text
