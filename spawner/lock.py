"""One spawner at a time on one sockets root. The kernel lets go of the lock however the process ends."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spawner.errors import Taken


@contextmanager
def only_one(root: Path) -> Iterator[None]:
    """Holds the lock while the block runs. Raises Taken."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / ".spawner.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Taken(f"another spawner works on {root}") from None
        yield
