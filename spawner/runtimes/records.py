"""Child processes as the kernel knows them: records of who they are, and asking /proc about them.

A pid alone names nobody: it is used again. Pid and start time together name one process of one boot
(proc(5)).
"""

import contextlib
import json
import os
import signal
from dataclasses import asdict, dataclass, fields
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Record:
    """One child. `pid` and `start_ticks` are None until it has drawn its first breath (launch.py)."""

    deployment: str
    tenant: str
    generation: int
    created_at: int
    spec: str
    command: list[str]
    directory: str
    environ: dict[str, str]
    pid: int | None = None
    start_ticks: int | None = None

    @property
    def alive(self) -> bool:
        """Whether that very process still runs."""
        return self.pid is not None and start_ticks(self.pid) == self.start_ticks

    def write(self, path: Path) -> None:
        """Puts the record at `path` in one step."""
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(self)))
        temporary.rename(path)


_NAMES = {field.name for field in fields(Record)}


def read(path: Path) -> Record | None:
    """The record at `path`; None where there is none."""
    try:
        known = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Record(**{name: value for name, value in known.items() if name in _NAMES})


def start_ticks(pid: int) -> int | None:
    """The start time of a process that runs; None for one that is gone or only waits to be buried."""
    found = _stat(Path(f"/proc/{pid}"))
    return None if found is None or found[0] in "ZX" else int(found[19])


def send(pid: int, number: signal.Signals) -> None:
    """Sends a signal to a process that may be gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def kill_session(leader: int) -> None:
    """Kills what runs in the session that `leader` began (field 6 of proc(5)'s stat), itself excepted."""
    for entry in Path("/proc").glob("[0-9]*"):
        found = _stat(entry)
        if found is not None and int(found[3]) == leader and int(entry.name) != leader:
            send(int(entry.name), signal.SIGKILL)


def _stat(entry: Path) -> list[str] | None:
    """The fields of proc(5)'s stat from the third on; the second, a name, may hold anything."""
    try:
        return (entry / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
