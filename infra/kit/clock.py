"""LIGHT. Time as a thing that is handed in, so that tests can move it."""

import time
from typing import Protocol


class Clock(Protocol):
    """Where a moment comes from."""

    def now_at(self) -> int:
        """Milliseconds since the epoch, UTC."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never run backwards, from no particular beginning."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_at(self) -> int:
        """See `Clock.now_at`."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """See `Clock.monotonic_s`."""
        return time.monotonic()


class FakeClock:
    """A clock that stands still until it is told to move."""

    def __init__(self, now_at: int = 1_767_225_600_000) -> None:
        self._now_at = now_at
        self._monotonic_s = 1000.0

    def now_at(self) -> int:
        """See `Clock.now_at`."""
        return self._now_at

    def monotonic_s(self) -> float:
        """See `Clock.monotonic_s`."""
        return self._monotonic_s

    def advance(self, seconds: float) -> None:
        """Moves both hands forward by `seconds`."""
        self._now_at += round(seconds * 1000)
        self._monotonic_s += seconds

    def jump(self, seconds: float) -> None:
        """Sets the wall clock alone ahead or back, as a time server may."""
        self._now_at += round(seconds * 1000)
