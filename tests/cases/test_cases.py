"""Every case has a row that is true: its tests exist, or it cannot arise and a test keeps it so, or it is named
as work of a later room."""

import ast
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
AREAS = ("agent", "metering", "spawning", "web")
# What is not there yet, so that its cases cannot be tried; a row may add in brackets what it waits for.
LATER = {
    "Caddy in front",
    "MCP",
    "acting as a tenant",
    "approvals",
    "connections with OAuth",
    "deleting an account",
    "files and a shell",
    "helper agents",
    "images and files",
    "import of conversations",
    "memory in depth",
    "payments",
    "schedules",
    "second factors",
    "sign-in with other providers",
    "thinking kept between turns",
    "web tools and files",
}


def rows(area: str) -> list[dict[str, Any]]:
    """The cases of an area."""
    found: list[dict[str, Any]] = tomllib.loads(
        (Path(__file__).parent / f"{area}.toml").read_text()
    )["case"]
    return found


CASES = [
    pytest.param(area, row, id=f"{area}-{row['number']}") for area in AREAS for row in rows(area)
]


@cache
def functions_in(path: Path) -> frozenset[str]:
    """Names of the test functions of a file that pytest collects, and does not pass over."""
    if not path.name.startswith("test_"):
        return frozenset()
    return frozenset(
        found.name
        for found in ast.walk(ast.parse(path.read_text()))
        if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef)
        and found.name.startswith("test_")
        and not any(_passes_over(mark) for mark in found.decorator_list)
    )


def _passes_over(mark: ast.expr) -> bool:
    said = ast.unparse(mark)
    return said.startswith(("pytest.mark.skip", "pytest.mark.xfail"))


@pytest.mark.parametrize(("area", "case"), CASES)
def test_row_is_true(area: str, case: dict[str, Any]) -> None:
    assert case["about"]
    held, cannot, later = case.get("tests", []), case.get("cannot"), case.get("later")
    assert bool(held) != bool(later), "a case is held by tests or is for later"
    assert not (cannot and later)
    for test in held:
        path, _, name = test.partition("::")
        assert (ROOT / path).is_file(), f"{path} is gone"
        assert name in functions_in(ROOT / path), f"{test} is gone"
    if cannot:
        assert (ROOT / case["decision"]).is_file()


def test_rows_for_later_name_a_room_that_is_to_come_and_every_such_room_has_a_row() -> None:
    named = {
        row["later"].partition(" (")[0] for area in AREAS for row in rows(area) if "later" in row
    }
    assert named == LATER


@pytest.mark.parametrize("area", AREAS)
def test_numbers_are_unique_and_in_order(area: str) -> None:
    numbers = [row["number"] for row in rows(area)]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("area", AREAS)
def test_at_most_a_fifth_cannot_arise(area: str) -> None:
    all_rows = rows(area)
    assert sum("cannot" in row for row in all_rows) <= len(all_rows) / 5
