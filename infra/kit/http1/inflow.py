"""A body on its way in: what arrived and was not taken yet, with an upper bound."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

# Takes the next part of a body at once; whether it takes more.
Sink = Callable[[bytes], bool]
# Held before the sender is made to wait; one more read of the socket may come on top.
HIGH_WATER_BYTES = 64 * 1024


class Valve(Protocol):
    """Whoever feeds an inflow, and can stop and go on."""

    def hold(self) -> None:
        """Reads nothing more for now."""
        ...

    def flow(self) -> None:
        """Reads on."""
        ...


class Inflow:
    """Bytes between a parser that finds them and a coroutine that takes them. One reader at a time.

    `ended`: the whole body arrived; some of it may still be untaken. `holding`: the valve is shut.
    """

    __slots__ = ("_buffered", "_error", "_parts", "_sink", "_valve", "_waiter", "ended", "holding")

    def __init__(self, valve: Valve) -> None:
        self._valve = valve
        self._parts: list[bytes] = []
        self._buffered = 0
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._sink: Sink | None = None
        self.ended = self.holding = False

    @property
    def waiting(self) -> bool:
        """Whether somebody waits for bytes now."""
        return self._waiter is not None

    def ready(self) -> bool:
        """Whether `read` would answer at once."""
        return bool(self._parts) or self.ended or self._error is not None

    def feed(self, data: bytes) -> None:
        """Takes bytes from the wire; holds the valve when too many wait."""
        self._parts.append(data)
        self._buffered += len(data)
        if self._buffered > HIGH_WATER_BYTES and not self.holding:
            self.holding = True
            self._valve.hold()
        if self._sink is None:
            self._wake()

    def flush(self) -> None:
        """All of one read of the socket was fed: whoever is pushed at gets it, in one piece."""
        sink = self._sink
        if sink is None or not self._parts or self.ended:
            return
        try:
            if sink(self._take()):
                return
        except Exception as error:
            self._sink = None
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_exception(error)
            return
        self._sink = None
        self._wake()

    def end(self) -> None:
        """The body is whole. Without effect the second time."""
        if not self.ended:
            self.ended = True
            self._let_flow()
            self._wake()

    def fail(self, error: Exception) -> None:
        """No more will come: `read` raises `error` once what did come is taken. The first error counts."""
        if not self.ended and self._error is None:
            self._error = error
            self._wake()

    async def read(self) -> bytes:
        """All that waits, as soon as anything does; empty at the body's end."""
        while not self._parts:
            if self.ended:
                return b""
            if self._error is not None:
                raise self._error
            await self._wait()
        return self._take()

    def _take(self) -> bytes:
        taken = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._buffered = 0
        self._let_flow()
        return taken

    async def push(self, sink: Sink) -> bool:
        """Hands `sink` what waits, and then what every `flush` ends, with no task's turn in between.

        True at the body's end, False once `sink` takes no more. Raises as `read`, and what `sink` raises.
        """
        while True:
            if self._parts and not sink(self._take()):
                return False
            if self.ended:
                return True
            if self._error is not None:
                raise self._error
            self._sink = sink
            try:
                await self._wait()
            finally:
                stopped, self._sink = self._sink is None, None
            if stopped:
                return False

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _let_flow(self) -> None:
        if self.holding:
            self.holding = False
            self._valve.flow()


class _Nobody:
    def hold(self) -> None:
        """Never asked."""

    def flow(self) -> None:
        """Never asked."""


# The body of every message that has none; shared, since it never changes.
NOTHING: Final = Inflow(_Nobody())
NOTHING.end()
