"""A deadline that is nearly free to move, because every request moves it several times."""

import asyncio
from collections.abc import Callable


class Deadline:
    """Calls `expired` once after the time that was set last, unless it was moved on before.

    The timer underneath is only touched when it would fire too late; when it fires too early it goes
    back to sleep for the rest. A connection keeps one deadline for all its waits.
    """

    __slots__ = ("_at", "_expired", "_fires_at", "_loop", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, expired: Callable[[], None]) -> None:
        self._loop, self._expired = loop, expired
        self._at: float | None = None
        self._fires_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        """From now on the deadline is `seconds` away."""
        self._at = at = self._loop.time() + seconds
        if self._timer is None:
            self._arm(at)
        elif at < self._fires_at:
            self._timer.cancel()
            self._arm(at)

    def clear(self) -> None:
        """There is no deadline until the next `set`."""
        self._at = None

    def close(self) -> None:
        """Lets go of the timer, and with it of whoever waits."""
        self._at = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, at: float) -> None:
        self._fires_at = at
        self._timer = self._loop.call_at(at, self._fire)

    def _fire(self) -> None:
        self._timer = None
        if self._at is None:
            return
        if self._loop.time() < self._at:
            self._arm(self._at)
            return
        self._at = None
        self._expired()
