"""Processes of a house: children that die with the test, and asking /proc about others."""

import contextlib
import ctypes
import random
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
    """A TCP port of loopback that nobody has, out of those that outgoing connections are not given."""
    while True:
        port = random.randrange(15_000, 32_000)
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port
