"""Where a test may kill the spawner, as power would: at every transition and every effect outside.

Only heard when ALCOVE_TEST=1; names are checked, so that a point cannot vanish unnoticed.
"""

import os
import signal

START_POINTS = (
    "creating",  # committed: a start has begun
    "directories",  # made
    "key",  # minted by the meter and written
    "volume",  # made
    "created",  # the runtime has it, we have not written that down
    "starting",  # committed
    "started",  # the runtime runs it, we have not seen it answer
    "answering",  # it answered, we have not written that down
    "ready",  # committed
)
STOP_POINTS = (
    "stopping",  # committed
    "gone",  # the runtime has let go of it
    "released",  # its key is taken back, its directories are removed
    "stopped",  # committed
)
POINTS = START_POINTS + STOP_POINTS


class Faults:
    """Kills this process with SIGKILL at one named point, or never."""

    def __init__(self, point: str | None = None) -> None:
        if point is not None and point not in POINTS:
            raise ValueError(f"no fault point is called {point!r}; there are: {', '.join(POINTS)}")
        self._point = point

    def at(self, point: str) -> None:
        """Says that the process has come to `point`."""
        assert point in POINTS, point
        if point == self._point:
            os.kill(os.getpid(), signal.SIGKILL)
