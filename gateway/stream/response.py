"""A stream as an answer: begins at once, ends on time, and notices when its browser has left.

Pure ASGI, since a wrapped body hides a disconnect and a blocked write would outlive its session.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.stream.hub import Hub, Listener
from infra.kit import sse

_LAST_WORDS_S = 1.0


class StreamResponse(Response):
    """Sends frames until they end, the browser leaves, or the time is over."""

    def __init__(
        self,
        frames: AsyncGenerator[bytes, None],
        listener: Listener,
        hub: Hub,
        longest_s: float,
        count: Callable[[int], None],
    ) -> None:
        self._frames, self._listener, self._hub = frames, listener, hub
        self._longest_s, self._count = longest_s, count
        self.status_code, self.background = 200, None
        self.raw_headers = [
            (b"content-type", sse.CONTENT_TYPE.encode()),
            *((key.encode(), value.encode()) for key, value in sse.HEADERS.items()),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._count(1)
        tasks: list[asyncio.Task[Any]] = [
            asyncio.create_task(self._write(send)),
            asyncio.create_task(_left(receive)),
            asyncio.create_task(self._time_is_over()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._hub.leave(self._listener)
            self._count(-1)
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        written = results[0]
        if isinstance(written, Exception) and not isinstance(written, OSError):
            raise written

    async def _write(self, send: Send) -> None:
        await send(
            {"type": "http.response.start", "status": 200, "headers": list(self.raw_headers)}
        )
        async with aclosing(self._frames) as frames:
            async for frame in frames:
                await send({"type": "http.response.body", "body": frame, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _time_is_over(self) -> None:
        """Ends the stream after its longest time; gives its last words a second once it must end."""
        try:
            async with asyncio.timeout(self._longest_s):
                await self._listener.over.wait()
        except TimeoutError:
            self._listener.end("closing")
        await asyncio.sleep(_LAST_WORDS_S)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
