"""Starts a command that dies with its parent: `python child.py PARENT COMMAND…`, PARENT a process id.

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
    """Become the command on the command line, unless PARENT is gone already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(sys.argv[1]):
        raise SystemExit(1)
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606


if __name__ == "__main__":
    main()
