"""A tenant's data directory on this machine: made once, handed to whoever its agent runs as, never emptied,
and measured without trusting what lies in it.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

# What a file costs beyond its blocks; so a limit on bytes bounds the number of files too, and with it
# how long measuring takes.
_FILE_BYTES = 4096
_DEEPEST = 100


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


def sizes(root: Path, most_bytes: Mapping[str, int]) -> dict[str, int]:
    """`size` of these tenants' directories under `root`; who cannot be measured is missing."""
    found = {tenant: size(root / tenant, most_bytes=most) for tenant, most in most_bytes.items()}
    return {tenant: measured for tenant, measured in found.items() if measured is not None}


def size(path: Path, *, most_bytes: int) -> int | None:
    """Bytes that what lies in `path` takes on the disk, counted no further than past `most_bytes`.

    Follows no link and opens nothing but directories, whose tree may be changed meanwhile and may be
    made to be costly: one deeper than a hundred counts as past the limit. A directory that is not there
    is empty; None: this process may not look.
    """
    try:
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return 0
    except OSError:
        return None
    return _Count(most_bytes).of(top)


class _Count:
    """The count of one tree. A file of several names is counted once."""

    def __init__(self, most_bytes: int) -> None:
        self._most, self._bytes = most_bytes, 0
        self._seen: set[tuple[int, int]] = set()

    def of(self, directory: int, depth: int = 0) -> int | None:
        """Counts what is in the open directory, and closes it."""
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    if self._bytes > self._most:
                        break
                    if not self._one(entry.name, directory, depth):
                        return None
        except PermissionError:
            return None
        finally:
            os.close(directory)
        return self._bytes

    def _one(self, name: str, directory: int, depth: int) -> bool:
        """Counts one name; whether that could be done."""
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
                if (found.st_dev, found.st_ino) in self._seen:
                    return True
                self._seen.add((found.st_dev, found.st_ino))
            self._bytes += max(_FILE_BYTES, found.st_blocks * 512)
            if not stat.S_ISDIR(found.st_mode):
                return True
            if depth >= _DEEPEST:
                self._bytes = self._most + 1
                return True
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            inside = os.open(name, flags, dir_fd=directory)
        except (FileNotFoundError, NotADirectoryError):
            return True  # gone, or another thing, since it was listed
        except OSError:
            return False
        return self.of(inside, depth + 1) is not None
