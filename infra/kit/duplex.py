"""Two open connections joined to one: what either side sends reaches the other, until both have ended.

Nothing here knows what the bytes are, who the sides are or what they may spend.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, Protocol

from infra.kit.http1.deadline import Deadline

_PIECE_BYTES = 64 * 1024
Direction = Literal["up", "down"]
# `closed`: each side ended its half; `idle`: no byte came from either for too long; `broken`: one was cut.
Ending = Literal["closed", "idle", "broken"]
Passing = Callable[[Direction, int], Awaitable[None]]


class Duplex(Protocol):
    """One connection, whose halves end by themselves."""

    async def read(self) -> bytes:
        """What came, as soon as anything did; empty once the other end has ended its half."""
        ...

    async def write(self, data: bytes) -> None:
        """Sends `data`; waits while the other end is slower than we are."""
        ...

    async def end(self) -> None:
        """Ends our half once what was written is on its way; what comes is still read."""
        ...

    def abort(self) -> None:
        """Breaks the connection. Without effect on one that is over."""
        ...


class Streams:
    """A pair of asyncio's streams as a Duplex."""

    __slots__ = ("_reader", "_writer")

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self) -> bytes:
        """See Duplex."""
        return await self._reader.read(_PIECE_BYTES)

    async def write(self, data: bytes) -> None:
        """See Duplex."""
        self._writer.write(data)
        await self._writer.drain()

    async def end(self) -> None:
        """See Duplex."""
        if not self._writer.is_closing():
            self._writer.write_eof()
            self._writer.transport.set_write_buffer_limits(0)  # so that drain waits for all of it
            await self._writer.drain()

    def abort(self) -> None:
        """See Duplex."""
        self._writer.transport.abort()


async def join(near: Duplex, far: Duplex, *, idle_s: float, passing: Passing) -> Ending:
    """Passes bytes both ways until it has ended, and leaves both connections ended or broken.

    `passing` is awaited before bytes go `up` (near to far) or `down`; what it raises breaks both and is
    raised here, as is a cancellation. A side that is slow to take holds the other one back.
    """
    loop = asyncio.get_running_loop()
    ending: Ending = "closed"

    async def pump(direction: Direction, source: Duplex, sink: Duplex) -> None:
        while data := await source.read():
            deadline.set(idle_s)
            await passing(direction, len(data))
            await sink.write(data)
            deadline.set(idle_s)
        await sink.end()

    def expired() -> None:
        nonlocal ending
        ending = "idle"
        for task in pumps:
            task.cancel()

    deadline = Deadline(loop, expired)
    pumps = [
        loop.create_task(pump("up", near, far)),
        loop.create_task(pump("down", far, near)),
    ]
    deadline.set(idle_s)
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        deadline.close()
        whole = all(task.done() and not task.cancelled() and not task.exception() for task in pumps)
        for task in pumps:
            task.cancel()
        if not whole:
            near.abort()
        far.abort()
        outcomes = await asyncio.gather(*pumps, return_exceptions=True)
    return ending if ending == "idle" else _ending(outcomes)


def _ending(outcomes: list[BaseException | None]) -> Ending:
    """How it ended. Raises what is nobody's connection's fault."""
    raised = [item for item in outcomes if isinstance(item, Exception)]
    for error in raised:
        if not isinstance(error, OSError):
            raise error
    return "broken" if raised else "closed"
