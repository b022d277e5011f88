"""How preparation speaks: one line a step, with its time, so that nothing slow is silent."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_TAIL_LINES = 25


class StepFailed(Exception):
    """A step of preparation failed; the message is what a person reads, remedy included."""


def line(text: str) -> None:
    """Print `text` at once, even into a pipe."""
    print(text, flush=True)


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    """Announce `name`, then how it ended and how many seconds it took."""
    line(f"  … {name}")
    started = time.monotonic()
    try:
        yield
    except BaseException:
        line(f"  ✗ {name} (after {time.monotonic() - started:.1f} s)")
        raise
    line(f"  ✓ {name} ({time.monotonic() - started:.1f} s)")


def run(
    command: Sequence[str],
    *,
    log: Path | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
) -> None:
    """Run `command` with its output kept in `log` (else held back), and show the end of it on failure.

    Raises StepFailed with the command, its exit code and where the whole log lies.
    """
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError as missing:
        raise StepFailed(f"{command[0]} is not installed") from missing
    except subprocess.TimeoutExpired as slow:
        raise StepFailed(f"{' '.join(command)}: no end after {slow.timeout:.0f} s") from slow
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(done.stdout)
    if done.returncode:
        tail = done.stdout.decode(errors="replace").splitlines()[-_TAIL_LINES:]
        where = f"; whole log: {log}" if log else ""
        raise StepFailed(
            "\n".join([*tail, f"{' '.join(command)} ended with {done.returncode}{where}"])
        )


def succeeds(command: Sequence[str], *, timeout_s: float = 20.0) -> bool:
    """Whether `command` exists, ends in time and exits 0. Its output is not shown."""
    return output(command, timeout_s=timeout_s) is not None


def output(command: Sequence[str], *, timeout_s: float = 20.0) -> str | None:
    """What `command` prints, stripped; None where it is missing, fails or takes too long."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else None


def main(work: object, *arguments: object) -> None:
    """Call `work(*arguments)`; a StepFailed becomes its message on stderr and exit code 1."""
    assert callable(work)
    try:
        work(*arguments)
    except StepFailed as failed:
        print(failed, file=sys.stderr, flush=True)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
