"""What a commit cannot be faster than: one write that has reached the disk."""

import os
import statistics
import tempfile
import time
from pathlib import Path

_PAGE = b"\0" * 4096
_TIMES = 100


def sync_ms(directory: Path) -> float:
    """The median of a hundred fdatasyncs, each after a page that was appended to a file there."""
    took_s = []
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        for _ in range(_TIMES):
            file.write(_PAGE)
            began_s = time.perf_counter()
            os.fdatasync(file.fileno())
            took_s.append(time.perf_counter() - began_s)
    return statistics.median(took_s) * 1000
