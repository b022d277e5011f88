"""Runs defects one at a time in a copy of the tree and says which survived."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.sabotage.defect import ROOT, Defect, GoneStale

_FAILED_TESTS = 1  # pytest's exit code for "tests ran, some failed"; anything else is no verdict
_BUILT = ("gateway/static/dist",)  # made by `make pages`, not committed, needed by pages' tests


@contextmanager
def copy_of_the_tree() -> Iterator[Path]:
    """A copy of everything that git knows or would take, while the block runs."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    with tempfile.TemporaryDirectory(prefix="alcove-sabotage-") as name:
        tree = Path(name)
        for relative in filter(None, listed):
            if (ROOT / relative).is_file():
                (tree / relative).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / relative, tree / relative)
        for built in _BUILT:
            if (ROOT / built).is_dir():
                shutil.copytree(ROOT / built, tree / built, dirs_exist_ok=True)
        yield tree


def pytest_in(tree: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Exit code and output of the tests, run on the copy's code and nothing else."""
    env = {
        **os.environ,
        "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'agent_image'}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(
        command, cwd=tree, env=env, capture_output=True, text=True, timeout=600, check=False
    )
    return done.returncode, done.stdout + done.stderr


def verdict(defect: Defect) -> str | None:
    """None where the defect turned its tests red, else what is wrong."""
    with copy_of_the_tree() as tree:
        try:
            defect.put_into(tree)
        except GoneStale as stale:
            return str(stale)
        code, output = pytest_in(tree, defect.tests)
    if code == _FAILED_TESTS:
        return None
    last = "\n    ".join(output.strip().splitlines()[-6:])
    how = "stayed green" if code == 0 else f"gave no verdict (pytest ended with {code})"
    return f"{defect.name}: its tests {how}\n    {last}"


def run(defects: Sequence[Defect]) -> int:
    """Runs `defects`, after their tests alone have shown green; the exit code."""
    tests = sorted({test for defect in defects for test in defect.tests})
    with copy_of_the_tree() as tree:
        code, output = pytest_in(tree, ["-n", "2", *tests])
    if code:
        print(output)
        print(
            f"Without any defect these tests end with {code}; nothing can be learnt from red ones."
        )
        return 1
    print(f"{len(tests)} sets of tests are green without a defect.")
    wrong = []
    for defect in defects:
        began = time.monotonic()
        found = verdict(defect)
        print(
            f"{'✗' if found else '✓'} {defect.name} ({time.monotonic() - began:.0f} s): {defect.why}"
        )
        if found:
            wrong.append(found)
    for found in wrong:
        print(f"\n{found}")
    print(f"\n{len(defects) - len(wrong)} of {len(defects)} defects turned the tests red.")
    return 1 if wrong else 0
