"""Processes of a house: children that die with the test, and asking /proc about others."""

import ctypes
import signal
import socket
import subprocess
from pathlib import Path
from typing import IO

_PR_SET_PDEATHSIG = 1


def spawn(
    command: list[str], environment: dict[str, str], log: IO[bytes]
) -> "subprocess.Popen[bytes]":
    """A child that dies with this process, however that dies (prctl(2))."""
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        preexec_fn=lambda: ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM),
    )


def runs(pid: int) -> bool:
    """Whether the process is there and not merely waiting to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except FileNotFoundError:
        return False


def free_port() -> int:
    """A port of the loopback interface that nobody listens on now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
