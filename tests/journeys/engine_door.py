"""A door in front of the container engine's socket that can hang, dawdle, refuse, break or forget on purpose."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

ENGINE = "/var/run/docker.sock"
Mood = Literal["opens", "hangs", "dawdles", "refuses", "breaks", "forgets"]
MOODS: tuple[Mood, ...] = ("hangs", "dawdles", "refuses", "breaks", "forgets")
_SLOW_S = 0.7


def _answer(status: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Door:
    """Passes bytes both ways as its mood allows; `refuses` answers 500, `forgets` lists no container."""

    def __init__(self, engine: str = ENGINE) -> None:
        self._engine = engine
        self._mood: Mood = "opens"
        self._changed = asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()
        self.asked = 0  # requests that came while it was not open

    def be(self, mood: Mood) -> None:
        """From now on. What was held back while it hung goes through when it opens."""
        self._mood = mood
        self._changed.set()
        self._changed = asyncio.Event()
        if mood == "breaks":
            for writer in self._open:
                writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        if self._mood == "breaks":
            self.asked += 1
            writer.transport.abort()
            return
        self._open.add(writer)
        try:
            there, to = await asyncio.open_unix_connection(self._engine)
            async with asyncio.TaskGroup() as ways:
                asks = ways.create_task(self._asks(reader, to, writer))
                ways.create_task(self._answers(there, writer, asks))
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(writer)
            for end in (writer, to):
                end.transport.abort()

    async def _asks(
        self, near: asyncio.StreamReader, far: asyncio.StreamWriter, back: asyncio.StreamWriter
    ) -> None:
        while data := await near.read(65536):
            line = data.split(b"\r\n", 1)[0]
            if self._mood != "opens":
                self.asked += 1
            await self._pass()
            if self._mood == "refuses" and b" HTTP/1.1" in line:
                back.write(_answer("500 Internal Server Error", b'{"message":"broken"}'))
            elif self._mood == "forgets" and b"/containers/json" in line:
                back.write(_answer("200 OK", b"[]"))
            elif self._mood != "refuses":
                far.write(data)
                await far.drain()
        far.write_eof()

    async def _answers(
        self, far: asyncio.StreamReader, near: asyncio.StreamWriter, asks: asyncio.Task[None]
    ) -> None:
        while data := await far.read(65536):
            await self._pass()
            near.write(data)
            await near.drain()
        asks.cancel()

    async def _pass(self) -> None:
        if self._mood == "dawdles":
            await asyncio.sleep(_SLOW_S)
        while self._mood == "hangs":
            await self._changed.wait()


@asynccontextmanager
async def door(path: Path, engine: str = ENGINE) -> AsyncIterator[Door]:
    """A door that listens at `path` while the block runs."""
    made = Door(engine)
    server = await asyncio.start_unix_server(made.serve, path)
    try:
        yield made
    finally:
        server.close()
        made.be("breaks")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                await server.wait_closed()
