"""The database's clock as it would be if nobody had set it ahead: what leases of other processes are judged by.

Who lives renews three times in a lease's length, by a clock that nobody sets. So a leap ends the leases of the
living for a moment only, and for that long this goes on as before it.
"""

from collections.abc import Callable

# Less is not told apart from a slow answer, and no lease is so short.
_LEAP_MS = 1_000


class Leaps:
    """`lease_s`: for how long after a leap nobody is taken for dead by it."""

    def __init__(self, lease_s: float, monotonic_s: Callable[[], float]) -> None:
        self._lease_s, self._monotonic_s = lease_s, monotonic_s
        self._seen: tuple[int, float] | None = None
        self._leapt_s: float | None = None

    def expected_at(self) -> int | None:
        """What the clock would say by now; None where it was never seen."""
        if self._seen is None:
            return None
        at, since_s = self._seen
        return at + round((self._monotonic_s() - since_s) * 1000)

    def saw(self, at: int) -> bool:
        """The clock has said `at`. True: it has leapt ahead since it was seen last."""
        expected_at, now_s = self.expected_at(), self._monotonic_s()
        if expected_at is None or at - expected_at < _LEAP_MS:
            self._seen, self._leapt_s = (at, now_s), None
            return False
        if self._leapt_s is None:
            self._leapt_s = now_s
            return True
        if now_s - self._leapt_s >= self._lease_s:
            self._seen, self._leapt_s = (at, now_s), None
        return False
