from pathlib import Path

import pytest

from infra.setup import pages, say, suite
from infra.setup.parts import PARTS, Part, bring


class Machine:
    """A machine that gets the packages it is given, but for the broken ones."""

    def __init__(self, *has: str, broken: tuple[str, ...] = ()) -> None:
        self.has = set(has)
        self.broken = broken
        self.asked: list[str] = []

    def part(self, name: str) -> Part:
        return Part(name, lambda: name in self.has, (name,), f"install {name}", f"-m {name}")

    def install(self, packages: list[str]) -> None:
        self.asked += packages
        self.has |= set(packages) - set(self.broken)


def test_missing_parts_are_told_before_they_are_installed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    machine = Machine("engine")
    said_before: list[str] = []

    def install(packages: list[str]) -> None:
        said_before.append(capsys.readouterr().out)
        machine.install(packages)

    assert bring([machine.part(name) for name in ("engine", "database", "browser")], install) == []
    assert machine.asked == ["database", "browser"]
    assert "lacks database, browser" in said_before[0]
    assert "ALCOVE_SETUP=0" in said_before[0]


def test_nothing_is_installed_when_it_is_forbidden() -> None:
    machine = Machine()
    missing = bring([machine.part("browser")], None)
    assert [part.remedy for part in missing] == ["install browser"]
    assert machine.asked == []


def test_part_stays_missing_when_its_package_brings_nothing() -> None:
    machine = Machine(broken=("browser",))
    missing = bring([machine.part(name) for name in ("browser", "database")], machine.install)
    assert [part.name for part in missing] == ["browser"]


def test_every_part_says_what_brings_it_and_what_is_lost_without_it() -> None:
    for part in PARTS:
        assert part.packages
        assert part.remedy
        assert part.tests.startswith("-m ")


def test_suite_runs_every_test_but_the_soak_exactly_once() -> None:
    commands = dict(suite.steps("node"))
    markers = [
        command[command.index("-m", 3) + 1] for command in commands.values() if "pytest" in command
    ]
    light, heavy = markers
    kinds = ["docker", "browser", "compose", "postgres", "slow", "none"]
    for kind in kinds:
        chosen = [_selects(expression, {kind}) for expression in (light, heavy)]
        assert sorted(chosen) == [False, True], kind
    assert not any(_selects(expression, {"soak", "docker"}) for expression in (light, heavy))


def _selects(expression: str, marked: set[str]) -> bool:
    names = {name: name in marked for name in ("docker", "browser", "compose", "slow", "soak")}
    return bool(eval(expression, {"__builtins__": {}}, names))


def test_pages_tests_are_named_one_by_one() -> None:
    found = suite.page_tests()
    assert all(name.startswith("tests/pages/") for name in found)
    assert found == sorted(found)


def test_step_shows_the_end_of_the_log_when_it_fails(tmp_path: Path) -> None:
    with pytest.raises(say.StepFailed) as caught:
        say.run(["sh", "-c", "echo reason; exit 3"], log=tmp_path / "logs" / "step.log")
    assert "reason" in str(caught.value)
    assert "ended with 3" in str(caught.value)
    assert (tmp_path / "logs" / "step.log").read_text() == "reason\n"


def test_step_fails_when_it_takes_too_long_or_does_not_exist() -> None:
    with pytest.raises(say.StepFailed, match="no end"):
        say.run(["sleep", "5"], timeout_s=0.05)
    with pytest.raises(say.StepFailed, match="not installed"):
        say.run(["alcove-no-such-program"])
    assert say.output(["alcove-no-such-program"]) is None


def test_node_that_is_found_is_new_enough() -> None:
    node = pages.node() / "node"
    version = say.output([str(node), "--version"])
    assert version is not None
    assert int(version.lstrip("v").split(".")[0]) >= 20
