"""A tenant's data directory on this machine: made once, handed to whoever its agent runs as, never emptied."""

import os
from pathlib import Path


def prepare(path: Path, *, uid: int, gid: int) -> None:
    """Makes the directory; as root also hands what is in it to `uid:gid`, following no link, where a
    runtime of another kind ran before."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    if os.geteuid() != 0 or path.stat().st_uid == uid:
        return
    for directory, names, files in os.walk(path, topdown=False):
        for name in (*names, *files):
            os.chown(os.path.join(directory, name), uid, gid, follow_symlinks=False)
    os.chown(path, uid, gid)  # last: it marks the work as done
