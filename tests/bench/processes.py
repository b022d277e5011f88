"""Processes under measurement: started on a core of their own, weighed, and always ended."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from infra.kit import address

_START_S = 90.0


@dataclass(frozen=True, slots=True)
class Cores:
    """Where what runs: the thing measured on one core, load and upstream on another."""

    proxy: int
    load: int

    @property
    def apart(self) -> bool:
        """Whether they really are different ones; if not, every figure is worth less."""
        return self.proxy != self.load


def cores() -> Cores:
    """The last two cores that this process may use."""
    allowed = sorted(os.sched_getaffinity(0))
    return Cores(proxy=allowed[-1], load=allowed[0])


def pinned(core: int, command: Sequence[str]) -> list[str]:
    """`command`, held on one core."""
    return ["taskset", "-c", str(core), *command]


@contextmanager
def running(
    command: Sequence[str],
    *,
    core: int,
    answers_at: str,
    log: Path,
    env: Mapping[str, str] | None = None,
) -> Iterator[int]:
    """A process that listens at `answers_at` while the block runs; gives its pid.

    It gets a session of its own, so that what it starts ends with it.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(
            pinned(core, command),
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
    try:
        _wait_until_it_listens(process, answers_at, log)
        yield process.pid
    finally:
        _end(process)


def _wait_until_it_listens(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while not _listens(url):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{process.args!r} did not come up:\n{log.read_text()[-2000:]}")
        time.sleep(0.02)


def _listens(url: str) -> bool:
    where = address.parse(url)
    family = socket.AF_UNIX if where.is_unix else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        target = str(where.path) if where.is_unix else (where.host, where.port)
        return probe.connect_ex(target) == 0


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(5)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def free_port() -> int:
    """A port on loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def tree(pid: int) -> list[int]:
    """The process and all its descendants."""
    found = [pid]
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += tree(int(child))
    return found


def cpu_s(pid: int) -> float:
    """Seconds of processor that the tree of `pid` has used (schedstat, all threads)."""
    total = 0
    for member in tree(pid):
        for stat in Path(f"/proc/{member}/task").glob("*/schedstat"):
            total += int(stat.read_text().split()[0])
    return total / 1e9


def rss_mb(pid: int) -> float:
    """Resident megabytes of the tree of `pid`."""
    total = 0
    for member in tree(pid):
        for line in Path(f"/proc/{member}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1])
    return total / 1024


def wait_until_idle(pid: int, *, most_s: float = 10.0) -> None:
    """Waits until the tree works no more: slow peers go on with calls whose client has left."""
    deadline = time.monotonic() + most_s
    before = cpu_s(pid)
    while time.monotonic() < deadline:
        time.sleep(0.2)
        now = cpu_s(pid)
        if now - before < 0.01:
            return
        before = now
