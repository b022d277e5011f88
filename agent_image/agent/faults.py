"""Crash points: places at which a test may kill the process, to see that a restart loses nothing."""

import os
import signal
from typing import Literal

Point = Literal["after_receive", "after_model", "before_tool", "after_tool", "before_reply_publish"]


class Faults:
    """Kills this process (SIGKILL: no handler, no flush) when it reaches the armed point."""

    def __init__(self, armed: str | None = None) -> None:
        self._armed = armed

    def reach(self, point: Point) -> None:
        """Does nothing, unless a test armed this point (`Settings.fault`)."""
        if point == self._armed:
            os.kill(os.getpid(), signal.SIGKILL)
