"""Circuit breakers: a model that fails again and again is left alone for a while, then tried by one call.

Five failures in a row within two minutes open a breaker for a minute; if the one call that is let through then
fails too, for twice as long, up to ten minutes. What the asker did wrong counts neither way.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field

from infra.kit.clock import Clock

FAILURES = 5
WITHIN_S = 120.0
REST_S = 60.0
MOST_REST_S = 600.0


@dataclass(slots=True)
class _Breaker:
    """`rest_s` 0: closed. `tried_s`: when the call was let through that shall decide, if one is on its way."""

    failed_s: deque[float] = field(default_factory=lambda: deque(maxlen=FAILURES))
    rest_s: float = 0.0
    until_s: float = 0.0
    tried_s: float | None = None


class Breakers:
    """One for each key: a provider and a model, and whose credentials are used where they are not ours."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._troubled: dict[Hashable, _Breaker] = {}

    def admits(self, key: Hashable) -> bool:
        """Whether a call may be made now. Whoever is admitted tells what came of it, by one of the next three."""
        breaker = self._troubled.get(key)
        if breaker is None or not breaker.rest_s:
            return True
        now_s = self._clock.monotonic_s()
        if now_s < breaker.until_s:
            return False
        if breaker.tried_s is not None and now_s < breaker.tried_s + breaker.rest_s:
            return (
                False  # one is enough; one that never says anything does not close the way for ever
            )
        breaker.tried_s = now_s
        return True

    def succeeded(self, key: Hashable) -> None:
        """An answer came to its end: all is well again."""
        self._troubled.pop(key, None)

    def failed(self, key: Hashable) -> None:
        """The provider did not answer, was overloaded, or broke off."""
        now_s = self._clock.monotonic_s()
        breaker = self._troubled.setdefault(key, _Breaker())
        if breaker.tried_s is not None:
            self._open(breaker, min(breaker.rest_s * 2, MOST_REST_S), now_s)
            return
        breaker.failed_s.append(now_s)
        full = len(breaker.failed_s) == FAILURES
        if not breaker.rest_s and full and now_s - breaker.failed_s[0] <= WITHIN_S:
            self._open(breaker, REST_S, now_s)

    def undecided(self, key: Hashable) -> None:
        """What came says nothing about the provider: the next call may decide."""
        breaker = self._troubled.get(key)
        if breaker is not None:
            breaker.tried_s = None

    def rest_s(self, key: Hashable) -> float:
        """How long no call is admitted yet; 0 where one may be."""
        breaker = self._troubled.get(key)
        if breaker is None or not breaker.rest_s:
            return 0.0
        return max(0.0, breaker.until_s - self._clock.monotonic_s())

    @property
    def open(self) -> int:
        """How many are not closed."""
        return sum(bool(breaker.rest_s) for breaker in self._troubled.values())

    @staticmethod
    def _open(breaker: _Breaker, rest_s: float, now_s: float) -> None:
        breaker.rest_s, breaker.until_s = rest_s, now_s + rest_s
        breaker.tried_s = None
        breaker.failed_s.clear()
