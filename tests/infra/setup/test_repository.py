"""What a newcomer meets first: make, the locks, the commands."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROMISED = [
    *("help", "run", "init", "test", "check", "fast", "soak", "sabotage", "fmt", "lock"),
    *("images", "up", "down", "screenshots", "bench-%"),
]


def make(*arguments: str) -> str:
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def test_help_explains_every_promised_target() -> None:
    explained = dict(re.findall(r"^  make (\S+) +(\S.*)$", make("help"), re.MULTILINE))
    assert set(PROMISED) <= set(explained)


def test_help_lists_every_target_that_is_not_plumbing() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][a-z%-]*):", makefile, re.MULTILINE))
    explained = set(re.findall(r"^  make (\S+)", make("help"), re.MULTILINE))
    assert targets - explained == {"venv-run", "venv-dev", "pages", "python"}


@pytest.mark.parametrize(
    "lock", sorted(path.name for path in (ROOT / "requirements").glob("*.lock"))
)
def test_lock_pins_hashes_and_names_no_registry(lock: str) -> None:
    text = (ROOT / "requirements" / lock).read_text()
    assert not re.search(r"https?://|file://|--(extra-)?index-url|--find-links", text)
    entries = re.split(r"\n(?=\S)", text.strip())
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9._-]+(\[[a-z0-9,-]+\])?==", entry), entry.splitlines()[0]
        assert "--hash=sha256:" in entry, entry.splitlines()[0]


def pins(lock: str) -> set[str]:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text()
    return set(re.findall(r"^([a-z0-9._-]+)(?:\[.*\])?==(\S+)", text, re.MULTILINE))


def test_what_runs_is_what_is_tested() -> None:
    assert pins("run") <= pins("dev")
    assert pins("agent") <= pins("run")


def test_agent_installs_nothing_that_only_services_need() -> None:
    names = {name for name, _ in pins("agent")}
    assert names.isdisjoint({"pydantic", "sqlalchemy", "fastapi", "aiohttp", "starlette", "docker"})
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {re.split(r"[^a-z0-9-]", line)[0] for line in project["dependencies"]}
    assert wanted <= names


def test_ci_runs_what_a_person_runs() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert re.findall(r"^(?!#)(.+)$", script, re.MULTILINE) == [
        'cd "$(dirname "$0")/.." && exec make test'
    ]
