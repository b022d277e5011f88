"""`make test`: the whole proof, from a bare machine.

Brings what the machine lacks where that may be done (infra.setup.parts), builds the images, then
runs every check and every test but the soak. One failing step does not hide the next; the last
lines say how each went. Up to five failed tests are run once more, alone: those that pass then are
named as unsteady, loudly, and are a defect to mend, but do not say that the product is broken.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from infra.setup import images, pages, parts, say

ROOT = Path(__file__).resolve().parents[2]
_HEAVY = "docker or browser or compose or slow"
_TESTS_FAILED = 1  # pytest's own exit status for it
_FEW = 5
_WORKERS = os.environ.get("WORKERS", "2")


def steps(node: str) -> list[tuple[str, list[str]]]:
    """What is run, in order: a name and a command each."""
    python = [sys.executable, "-m"]
    # A second look asks for what failed now, not for what failed some other day.
    pytest = [*python, "pytest", "-q", "--cache-clear", "--durations=10", "--durations-min=5"]
    return [
        ("format", [*python, "ruff", "format", "--check", "."]),
        ("lint", [*python, "ruff", "check", "."]),
        ("types", [*python, "mypy"]),
        (
            "import rules",
            [
                sys.executable,
                "-c",
                "from importlinter.cli import lint_imports_command as run; run()",
            ],
        ),
        ("pages", [node, "--test", *page_tests()]),
        ("tests", [*pytest, "-n", _WORKERS, "-m", f"not soak and not ({_HEAVY})"]),
        # One after another: they measure time, or share one engine, one browser's worth of memory, two cores.
        ("tests one at a time", [*pytest, "-m", f"({_HEAVY}) and not soak"]),
    ]


def page_tests() -> list[str]:
    """The files of node's tests, by name: what `node --test FOLDER` means changed between versions."""
    found = sorted(
        str(path.relative_to(ROOT)) for path in (ROOT / "tests/pages").rglob("*.test.*js")
    )
    if not found:
        raise say.StepFailed("tests/pages holds no *.test.mjs: the pages would go untested")
    return found


def main() -> int:
    """Prepare, run everything, tell; 0 when nothing failed."""
    began = time.monotonic()
    lost = parts.provide()
    if images.engine_version() is not None:
        images.build_all()
    environment = dict(os.environ)
    if os.environ.get("CI") == "true" or not lost:
        # Everything is here: a test that skips for want of a part has a defect.
        environment["ALCOVE_REQUIRE_ALL"] = "1"
    results = []
    unsteady: list[str] = []
    for name, command in steps(str(pages.node() / "node")):
        say.line(f"\n── {name}: {' '.join(command[1:])}")
        started = time.monotonic()
        code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        if code == _TESTS_FAILED and "pytest" in command:
            code = second_look(ROOT, environment, unsteady)
        results.append((name, code, time.monotonic() - started))
    say.line("")
    for name, code, seconds in results:
        say.line(f"  {'✗' if code else '✓'} {name} ({seconds:.0f} s)")
    for test in unsteady:
        say.line(f"  ~ unsteady, failed once and passed alone: {test}")
    for sentence in lost:
        say.line(f"  ! {sentence}")
    say.line(f"All of it took {time.monotonic() - began:.0f} s.")
    return int(any(code for _, code, _ in results))


def second_look(root: Path, environment: dict[str, str], unsteady: list[str]) -> int:
    """Runs the failed tests of the last pytest in `root` once more, if they are at most five.

    Answers the exit status; tests that pass this time are added to `unsteady`.
    """
    failed = last_failed(root / ".pytest_cache")
    if not 0 < len(failed) <= _FEW:
        return _TESTS_FAILED
    say.line("\n── once more, alone, since they failed:")
    for test in failed:
        say.line(f"   {test}")
    code = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *failed], cwd=root, env=environment, check=False
    ).returncode
    if code == 0:
        unsteady.extend(failed)
    return code


def last_failed(cache: Path) -> list[str]:
    """The tests that the last pytest run with this cache saw fail, by node id."""
    try:
        return sorted(json.loads((cache / "v" / "cache" / "lastfailed").read_text()))
    except FileNotFoundError:
        return []


def _main() -> None:
    raise SystemExit(main())


if __name__ == "__main__":
    say.main(_main)
