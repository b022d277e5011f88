"""What a test-run leaves behind is a defect of the code or of the test: found at the end of the session."""

import ctypes
import os
from pathlib import Path
from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
# Python's own companion of multiprocessing; it ends with the interpreter.
_OURS = b"multiprocessing.resource_tracker"


def adopt_orphans() -> None:
    """From now on a grandchild whose parent dies becomes a child of this process, so that it is seen."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children() -> dict[int, str]:
    """Living children of this process, with their command lines; dead ones are reaped on the way."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(") ")[2].split()[:2]
            pid = int(stat.parent.name)
            if int(parent) != os.getpid():
                continue
            if state == "Z":
                os.waitpid(pid, os.WNOHANG)
                continue
            raw = (stat.parent / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        if _OURS in raw:
            continue
        found[pid] = raw.replace(b"\0", b" ").decode(errors="replace").strip()[:160]
    return found


def containers_of(client: Any, deployments: set[str]) -> list[str]:
    """Containers that carry one of `deployments` in any label, running or not."""
    return [
        f"{container.name} ({container.status})"
        for container in client.containers.list(all=True)
        if deployments & set((container.labels or {}).values())
    ]
