"""Children of a supervisor that was killed: found again by process id and start time, and ended.

They die by themselves (infra.cli.child); this waits for that, because two spawners on one database
and one socket would be one too many.
"""

import contextlib
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

_PATIENCE_S = 8.0


def identity(pid: int) -> list[int] | None:
    """The process id with its start time in clock ticks (proc(5), field 22); None when it is gone or dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else [pid, int(fields[19])]


def end(recorded: Mapping[str, list[int]]) -> None:
    """Wait until none of the recorded processes runs; kill what still does after some seconds."""
    deadline = time.monotonic() + _PATIENCE_S
    while running := [known for known in recorded.values() if identity(known[0]) == known]:
        late = time.monotonic() > deadline
        for pid, _ in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
        time.sleep(0.1)
