"""Documents in step with what stands: links resolve, commands exist, variables are told."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, files, rooms

PAGES = [p for p in files() if p.suffix == ".md"]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    broken = []
    for target in LINK.findall(_without_code(page.read_text())):
        path, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        found = (page.parent / path).resolve() if path else page
        lost = anchor and found.suffix == ".md" and anchor not in _anchors(found.read_text())
        if not found.exists() or lost:
            broken.append(target)
    assert not broken


def _without_code(text: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)


def _anchors(text: str) -> set[str]:
    heads = re.findall(r"^#+\s+(.*)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z%-]*):(?:.*## )", (ROOT / "Makefile").read_text(), re.M))


def test_every_target_of_the_makefile_is_explained_by_help() -> None:
    text = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY:((?:.*\\\n)*.*)$", text, re.M)
    assert phony is not None
    declared = set(phony.group(1).replace("\\", " ").split())
    inner = {"venv-run", "venv-dev", "pages", "python"}
    assert declared - inner <= _targets()
    shown = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True)
    for target in _targets():
        assert f"make {target}" in shown.stdout


def test_targets_that_documents_name_exist() -> None:
    known = _targets()
    for page in PAGES:
        for named in re.findall(r"`make ([a-z][a-z-]*)", page.read_text()):
            assert named in known or named.startswith("bench-"), f"{page.name}: make {named}"


def test_variables_that_documents_name_are_read_somewhere() -> None:
    documented = set(
        re.findall(r"`(ALCOVE_[A-Z_]+[A-Z])`", (ROOT / "docs/configuration.md").read_text())
    )
    compose = (ROOT / "docker-compose.yml").read_text()
    code = "\n".join([compose, *(m.text for m in rooms())])
    fields = {
        name
        for name in documented
        if name in code or name.startswith("ALCOVE_AGENT_") or _is_a_field(name, code)
    }
    assert documented - fields == set()


def _is_a_field(variable: str, code: str) -> bool:
    """Whether a field stands in `code` that a prefix of pydantic's settings turns into `variable`."""
    prefixes = ("ALCOVE_GATEWAY_", "ALCOVE_SPAWNER_", "ALCOVE_METER_", "ALCOVE_")
    return any(
        f"    {variable.removeprefix(prefix).lower()}:" in code
        for prefix in prefixes
        if variable.startswith(prefix)
    )


def test_variables_that_code_reads_are_documented() -> None:
    told = "".join(p.read_text() for p in PAGES)
    read = {
        name
        for module in rooms()
        for name in re.findall(r"[\"'](ALCOVE_[A-Z_]+[A-Z])[\"']", module.text)
    }
    assert {
        name for name in read if name not in told and name.rpartition("_")[0] not in told
    } == set()


def test_decisions_are_numbered_and_have_their_four_parts() -> None:
    pages = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    assert pages
    numbers = [page.name[:4] for page in pages]
    assert len(set(numbers)) == len(numbers)
    for page in pages:
        text = page.read_text().lower()
        for part in ("context", "decision", "consequences", "alternatives"):
            assert re.search(rf"^(#+ |\*\*){part}", text, re.M), f"{page.name} lacks {part}"
