"""Runs defects in copies of the tree, one in each at a time, and says which survived."""

import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

from tests.sabotage.defect import ROOT, Defect, GoneStale

_FAILED_TESTS = 1  # pytest's exit code for "tests ran, some failed"; anything else is no verdict
_BUILT = ("gateway/static/dist",)  # made by `make pages`, not committed, needed by pages' tests
_AT_ONCE = int(os.environ.get("WORKERS", "2"))
_LONGEST_S = 600
_stamps = count(1)


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


@contextmanager
def mistaken(tree: Path, defect: Defect) -> Iterator[None]:
    """The mistake stands in the copy while the block runs. Raises GoneStale.

    Python takes compiled code for fresh by the source's size and second: each mistake has a second of its own.
    """
    path = tree / defect.file
    before = path.stat() if path.exists() else None
    text = path.read_bytes() if before else b""
    defect.put_into(tree)
    assert before is not None
    stamp = before.st_mtime + next(_stamps)
    os.utime(path, (stamp, stamp))
    try:
        yield
    finally:
        path.write_bytes(text)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def pytest_in(tree: Path, tests: Sequence[str], timeout_s: float | None = None) -> tuple[int, str]:
    """Exit code and output of the tests, run on the copy's code and nothing else."""
    env = {**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'agent_image'}"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command,
            cwd=tree,
            env=env,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f"no end within {timeout_s:g} s"
    return done.returncode, done.stdout + done.stderr


def verdict(tree: Path, defect: Defect) -> str | None:
    """None where the defect turned its tests red, else what is wrong."""
    try:
        with mistaken(tree, defect):
            code, output = pytest_in(tree, defect.tests, _LONGEST_S)
    except GoneStale as stale:
        return str(stale)
    if code == _FAILED_TESTS:
        return None
    last = "\n    ".join(output.strip().splitlines()[-6:])
    how = "stayed green" if code == 0 else f"gave no verdict (pytest ended with {code})"
    return f"{defect.name}: its tests {how}\n    {last}"


def run(defects: Sequence[Defect]) -> int:
    """Runs `defects`, after their tests alone have shown green; the exit code."""
    began = time.monotonic()
    tests = sorted({test for defect in defects for test in defect.tests})
    with ExitStack() as stack:
        first = stack.enter_context(copy_of_the_tree())
        print(f"First {len(tests)} sets of tests without a defect; minutes.", flush=True)
        code, output = pytest_in(first, ["-n", str(_AT_ONCE), *tests])
        if code:
            print(output)
            print(f"Without a defect these tests end with {code}; red ones can teach nothing.")
            return 1
        print(f"{len(tests)} sets of tests are green without a defect.", flush=True)
        trees: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for tree in [first, *(stack.enter_context(copy_of_the_tree()) for _ in range(1, _AT_ONCE))]:
            trees.put(tree)
        wrong = _all_of(defects, trees)
    for found in wrong:
        print(f"\n{found}")
    red, seconds = len(defects) - len(wrong), time.monotonic() - began
    print(f"\n{red} of {len(defects)} defects turned the tests red, in {seconds:.0f} s.")
    return 1 if wrong else 0


def _all_of(defects: Sequence[Defect], trees: queue.SimpleQueue[Path]) -> list[str]:
    """What is wrong with those that were not noticed; each is told as soon as it is known."""

    def one(defect: Defect) -> tuple[Defect, str | None, float]:
        tree, began = trees.get(), time.monotonic()
        try:
            return defect, verdict(tree, defect), time.monotonic() - began
        finally:
            trees.put(tree)

    wrong = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for done in as_completed([pool.submit(one, defect) for defect in defects]):
            defect, found, seconds = done.result()
            print(
                f"{'✗' if found else '✓'} {defect.name} ({seconds:.0f} s): {defect.why}", flush=True
            )
            if found:
                wrong.append(found)
    return wrong
