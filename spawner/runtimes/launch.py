"""The first breath of an agent that runs as a child process: leaves a record of itself, then becomes it.

Run as `python -I launch.py <record>`. It imports nothing of ours, to be quick. The record is written by
the child, so that a spawner killed right after the fork still finds it; the lock beside it is inherited
by the agent and lives as long as it does, so that there is never a second one.
"""

import fcntl
import json
import os
import sys
from pathlib import Path

EX_TEMPFAIL = 75  # sysexits.h: somebody else holds the lock


def main(record: Path) -> None:
    """Takes the lock, writes pid and start time to the record, and becomes the record's command."""
    held = os.open(record.with_name("lock"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SystemExit(EX_TEMPFAIL) from None
    os.set_inheritable(held, True)
    # Field 22 is the start time in clock ticks since boot (proc(5)); the name in parentheses may
    # hold anything, so the fields are counted after the last one.
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    known = json.loads(record.read_text())
    temporary = record.with_suffix(".new")
    temporary.write_text(json.dumps(known | {"pid": os.getpid(), "start_ticks": ticks}))
    temporary.rename(record)
    os.umask(0o007)
    os.chdir(known["directory"])
    os.execve(known["command"][0], known["command"], known["environ"])  # noqa: S606 (no shell: meant)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
