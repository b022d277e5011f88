"""Starts a command that dies with its parent: `python -m infra.cli.child COMMAND…`.

The kernel sends it SIGTERM when the supervisor is gone, however that went (prctl(2),
PR_SET_PDEATHSIG, which survives execve). Between fork and prctl the parent may already have died;
then getppid has changed.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Become the command on the command line. PARENT is the supervisor's process id."""
    parent = int(os.environ.pop("ALCOVE_CHILD_OF"))
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        raise SystemExit(1)
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606


if __name__ == "__main__":
    main()
