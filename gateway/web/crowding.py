"""Whether this process is near the end of its file descriptors, looked at about once a second."""

import os
import resource
import time

_SHARE, _FRESH_S = 0.8, 1.0


class Crowding:
    """True from 80 % of RLIMIT_NOFILE on: new requests are refused while open ones go on."""

    def __init__(self) -> None:
        self._looked_s, self._crowded = 0.0, False

    def __call__(self) -> bool:
        now_s = time.monotonic()
        if now_s - self._looked_s >= _FRESH_S:
            self._looked_s = now_s
            most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            self._crowded = len(os.listdir("/proc/self/fd")) > _SHARE * most
        return self._crowded
