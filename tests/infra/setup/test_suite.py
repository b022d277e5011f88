"""The suite's second look at few failed tests: only what pytest itself saw fail, and only what then passes."""

import subprocess
import sys
from pathlib import Path

import pytest

from infra.setup import suite

pytestmark = pytest.mark.thorough


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(
        "import pathlib\n"
        "def test_good(): pass\n"
        "def test_broken(): assert pathlib.Path('mended').exists()\n"
    )
    code = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"], cwd=tmp_path, capture_output=True, check=False
    ).returncode
    assert code == 1
    return tmp_path


def test_failed_test_is_named_when_it_is_asked_for(tree: Path) -> None:
    assert suite.last_failed(tree / ".pytest_cache") == ["test_it.py::test_broken"]


def test_failure_stays_a_failure_when_the_test_fails_again(tree: Path) -> None:
    unsteady: list[str] = []
    assert suite.second_look(tree, {}, unsteady) == 1
    assert unsteady == []


def test_test_is_unsteady_when_it_passes_alone(tree: Path) -> None:
    (tree / "mended").touch()
    unsteady: list[str] = []
    assert suite.second_look(tree, {}, unsteady) == 0
    assert unsteady == ["test_it.py::test_broken"]


def test_nothing_is_asked_twice_when_many_failed(tree: Path) -> None:
    (tree / "mended").touch()
    many = "\n".join(f"def test_{n}(): assert False" for n in range(6))
    (tree / "test_it.py").write_text(many)
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q"], cwd=tree, capture_output=True, check=False
    )
    unsteady: list[str] = []
    assert suite.second_look(tree, {}, unsteady) == 1
    assert unsteady == []
