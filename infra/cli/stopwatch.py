"""How long it took until all was ready, from the `make` that a person typed on, and what of it was building."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping

_LONGEST_S = 86_400  # what lies further back was not begun by this `make`
_WORTH_SAYING_S = 1.0


class Stopwatch:
    """Runs from now on. `ALCOVE_BEGAN_AT`, which `make run` sets, adds what was built before."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        wall_s: Callable[[], float] = time.time,
        steady_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._steady_s = steady_s
        self._began_s = steady_s()
        began_at = environment.get("ALCOVE_BEGAN_AT", "")
        before_s = wall_s() - int(began_at) if began_at.isdecimal() else 0.0
        self._before_s = before_s if 0 < before_s < _LONGEST_S else 0.0
        self._building_s = self._before_s

    @contextlib.contextmanager
    def building(self) -> Iterator[None]:
        """What the block takes is building, and not starting."""
        began_s = self._steady_s()
        try:
            yield
        finally:
            self._building_s += self._steady_s() - began_s

    def ready(self) -> str:
        """The sentence: all of the time, and its parts where something was built."""
        whole_s = self._before_s + self._steady_s() - self._began_s
        said = f"Ready after {whole_s:.0f} s"
        if self._building_s < _WORTH_SAYING_S:
            return said
        starting_s = whole_s - self._building_s
        return f"{said}: {self._building_s:.0f} s of building, {starting_s:.0f} s of starting"
