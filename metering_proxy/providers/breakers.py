"""Circuit breakers: a model that fails again and again is left alone for a while, then tried by one call.

Five failures in a row within two minutes open a breaker for a minute; if the one call that is let through then
fails too, for twice as long, up to ten minutes. What the asker did wrong counts neither way. Failures in a row are
told of from the first one on: a model that is seldom called would be dead for long before its breaker opens.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from infra.kit.clock import Clock
from infra.kit.value import value

FAILURES = 5
WITHIN_S = 120.0
REST_S = 60.0
MOST_REST_S = 600.0

Key = tuple[str, str, str | None]
"""A connection, the canonical id of a model, and the credential that is used where it is not ours."""
State = Literal["failing", "open", "half_open"]


@value
class Trouble:
    """Failures in a row, since `since_at`, the last one for the reason `why`.

    `failing`: calls are still made. `open`: none are until `probe_at`. `half_open`: one call decides, which is on
    its way or the next that comes. `passed_over`: calls that would have been made, had it been closed.
    """

    key: Key
    state: State
    since_at: int
    last_at: int
    failures: int
    why: str
    probe_at: int | None
    passed_over: int


@dataclass(slots=True)
class _Breaker:
    """`rest_s` 0: closed. `tried_s`: when the call was let through that shall decide, if one is on its way."""

    since_at: int
    last_at: int = 0
    failures: int = 0
    why: str = ""
    passed_over: int = 0
    failed_s: deque[float] = field(default_factory=lambda: deque(maxlen=FAILURES))
    rest_s: float = 0.0
    until_s: float = 0.0
    tried_s: float | None = None


class Breakers:
    """One for each key, in this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._troubled: dict[Key, _Breaker] = {}

    def admits(self, key: Key) -> bool:
        """Whether a call may be made now. Whoever is admitted tells what came of it, by one of the next four."""
        breaker = self._troubled.get(key)
        if breaker is None or not breaker.rest_s:
            return True
        now_s = self._clock.monotonic_s()
        # One try is enough; one that never says anything does not close the way for ever.
        trying = breaker.tried_s is not None and now_s < breaker.tried_s + breaker.rest_s
        if trying or now_s < breaker.until_s:
            breaker.passed_over += 1
            return False
        breaker.tried_s = now_s
        return True

    def succeeded(self, key: Key) -> None:
        """An answer came to its end: all is well again."""
        self._troubled.pop(key, None)

    def failed(self, key: Key, why: str) -> None:
        """The provider did not answer, was overloaded, or broke off."""
        now_s = self._clock.monotonic_s()
        breaker = self._noted(key, why)
        if breaker.tried_s is not None:
            self._open(breaker, min(breaker.rest_s * 2, MOST_REST_S), now_s)
            return
        breaker.failed_s.append(now_s)
        full = len(breaker.failed_s) == FAILURES
        if not breaker.rest_s and full and now_s - breaker.failed_s[0] <= WITHIN_S:
            self._open(breaker, REST_S, now_s)

    def refused(self, key: Key, why: str) -> None:
        """The provider does not take the key, or its account has no money. Of a key of ours it is told, but opens
        nothing: such an answer comes at once, and may be its asker's doing."""
        self.undecided(key)
        if key[2] is None:
            self._noted(key, why)

    def undecided(self, key: Key) -> None:
        """What came says nothing about the provider: the next call may decide."""
        breaker = self._troubled.get(key)
        if breaker is not None:
            breaker.tried_s = None

    def mended(self, provider: str) -> None:
        """A test of our connection has passed: whatever rests there may be tried by the next call."""
        for key, breaker in list(self._troubled.items()):
            if key[0] == provider and key[2] is None:
                if breaker.rest_s:
                    breaker.until_s, breaker.tried_s = self._clock.monotonic_s(), None
                else:
                    del self._troubled[key]

    def forget(self, provider: str) -> None:
        """The connection is gone."""
        for key in [key for key in self._troubled if key[0] == provider]:
            del self._troubled[key]

    def rest_s(self, key: Key) -> float:
        """How long no call is admitted yet; 0 where one may be."""
        breaker = self._troubled.get(key)
        if breaker is None or not breaker.rest_s:
            return 0.0
        return max(0.0, breaker.until_s - self._clock.monotonic_s())

    @property
    def open(self) -> int:
        """How many are not closed."""
        return sum(bool(breaker.rest_s) for breaker in self._troubled.values())

    @property
    def troubles(self) -> Sequence[Trouble]:
        """Everything whose last call failed, by provider and model."""
        told = [self._told(key, breaker) for key, breaker in self._troubled.items()]
        return sorted(told, key=lambda trouble: trouble.key[:2])

    def _noted(self, key: Key, why: str) -> _Breaker:
        now_at = self._clock.now_at()
        breaker = self._troubled.setdefault(key, _Breaker(since_at=now_at))
        breaker.last_at, breaker.why = now_at, why
        breaker.failures += 1
        return breaker

    def _told(self, key: Key, breaker: _Breaker) -> Trouble:
        rest_s = self.rest_s(key)
        state: State = "open" if rest_s else "half_open" if breaker.rest_s else "failing"
        return Trouble(
            key=key,
            state=state,
            since_at=breaker.since_at,
            last_at=breaker.last_at,
            failures=breaker.failures,
            why=breaker.why,
            probe_at=self._clock.now_at() + math.ceil(rest_s * 1000) if rest_s else None,
            passed_over=breaker.passed_over,
        )

    @staticmethod
    def _open(breaker: _Breaker, rest_s: float, now_s: float) -> None:
        breaker.rest_s, breaker.until_s = rest_s, now_s + rest_s
        breaker.tried_s = None
        breaker.failed_s.clear()
