"""What a file may be called, how long it may be, and what may not stand in it."""

import ast
import asyncio
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, Module, files, modules, rooms

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Called by asyncio and by httptools, whose documentation says when.
CALLBACKS = set(dir(asyncio.Protocol))
PARSER_CALLBACK = re.compile(
    r"on_(message_begin|url|status|header|headers_complete|body|message_complete|chunk_\w+)"
)
MOST_LINES = 300
# Longer files, each with the reason why two files would be worse.
LONGER: dict[str, str] = {}
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "service", "misc"}
PLUMBING = "infra/kit/service.py"

REGISTRIES = (
    "pypi" + ".org",
    "pythonhosted" + ".org",
    "registry.npmjs" + ".org",
    "deb.debian" + ".org",
    "security.debian" + ".org",
    "snapshot.debian" + ".org",
    "docker" + ".io/library",
    "registry-1.docker" + ".io",
    "ghcr" + ".io",
    "quay" + ".io",
)
TEXT = {
    ".py",
    ".md",
    ".toml",
    ".lock",
    ".in",
    ".yml",
    ".yaml",
    ".json",
    ".sh",
    ".css",
    ".js",
    ".html",
    ".sql",
    ".txt",
    "",
}


def test_files_are_at_most_300_lines() -> None:
    long = {
        module.where: lines
        for module in modules()
        if (lines := len(module.text.splitlines())) > MOST_LINES and module.where not in LONGER
    }
    assert not long


def test_exceptions_to_the_length_are_still_needed() -> None:
    for where, reason in LONGER.items():
        assert reason
        assert len((ROOT / where).read_text().splitlines()) > MOST_LINES, f"{where} fits now"


def test_no_module_has_a_name_that_means_anything() -> None:
    vague = [
        path
        for path in files()
        if path.suffix == ".py" and path.stem in VAGUE and str(path.relative_to(ROOT)) != PLUMBING
    ]
    assert not vague


def test_every_module_says_what_lives_there() -> None:
    silent = [
        m.where
        for m in rooms()
        if m.tree.body and not ast.get_docstring(m.tree) and "versions" not in m.path.parts
    ]
    assert not silent


def _public(module: Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions of the module and methods of its public classes that others may call."""
    found: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    for node in module.tree.body:
        if isinstance(node, FUNCTIONS):
            found.append(node)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            bases = [ast.unparse(base) for base in node.bases]
            inherited = CALLBACKS if any(b.endswith("Protocol") for b in bases) else set()
            found += [n for n in node.body if isinstance(n, FUNCTIONS) and n.name not in inherited]
    return [
        node
        for node in found
        if not node.name.startswith("_") and not PARSER_CALLBACK.fullmatch(node.name)
    ]


def test_every_public_function_says_what_it_promises() -> None:
    silent = [
        f"{module.where}:{node.lineno} {node.name}"
        for module in rooms()
        if "versions" not in module.path.parts
        for node in _public(module)
        if not ast.get_docstring(node) and not _overload(node)
        if node.name not in promised_by_protocols()[module.path.parent]
    ]
    assert not silent


@cache
def promised_by_protocols() -> dict[Path, set[str]]:
    """By package: names of methods that a Protocol there documents, for classes that keep it."""
    found: dict[Path, set[str]] = defaultdict(set)
    for module in rooms():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and "Protocol" in map(ast.unparse, node.bases):
                found[module.path.parent] |= {
                    one.name
                    for one in node.body
                    if isinstance(one, FUNCTIONS) and ast.get_docstring(one)
                }
    return found


def _overload(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        isinstance(d, ast.Name) and d.id in ("overload", "override") for d in node.decorator_list
    )


def test_no_committed_file_names_a_registry() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {host}"
        for path in files()
        if path.suffix in TEXT and path.stat().st_size < 3_000_000
        for host in REGISTRIES
        if host in path.read_text(errors="replace")
    ]
    assert not found


@pytest.mark.parametrize("lock", sorted(p.name for p in (ROOT / "requirements").glob("*.lock")))
def test_lock_has_hashes_and_no_address(lock: str) -> None:
    text = (ROOT / "requirements" / lock).read_text()
    assert "--hash=sha256:" in text
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links", text)


def test_no_committed_file_names_a_place_of_one_machine() -> None:
    private = ("/work" + "/", "/tmp" + "/BRIEF", "/root" + "/")
    found = [
        f"{path.relative_to(ROOT)}: {place}"
        for path in files()
        if path.suffix in TEXT
        for place in private
        if re.search(rf"(?<![\w.-]){re.escape(place)}", path.read_text(errors="replace"))
    ]
    assert not found


def test_tests_do_not_sleep_to_wait() -> None:
    """A test waits for conditions; doubles inside it may be slow on purpose, and `sleep(0)` lets others run."""
    sleeping = [
        f"{module.where}:{call.lineno}"
        for module in modules()
        if module.path.name.startswith("test_")
        for node in ast.walk(module.tree)
        if _is_test(node)
        for call in _own_calls(node)
        if ast.unparse(call.func) in ("time.sleep", "asyncio.sleep")
        and ast.unparse(call.args[0]) != "0"
    ]
    assert not sleeping


def _is_test(node: ast.AST) -> bool:
    return isinstance(node, FUNCTIONS) and node.name.startswith("test_")


def _own_calls(node: ast.AST) -> Iterator[ast.Call]:
    """Calls of a function itself, not of functions that are defined inside it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield child
        if not isinstance(child, FUNCTIONS):
            yield from _own_calls(child)


def test_tests_patch_nothing_of_ours() -> None:
    patched = [
        f"{module.where}:{node.lineno}"
        for module in modules()
        if module.where.startswith("tests/")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).split(".")[-1] in ("patch", "setattr")
        and ("monkeypatch" in ast.unparse(node.func) or "mock" in ast.unparse(node.func))
    ]
    assert not patched


def test_every_test_function_can_fail() -> None:
    empty = [
        f"{module.where}:{node.lineno} {node.name}"
        for module in modules()
        if module.path.name.startswith("test_")
        for node in ast.walk(module.tree)
        if isinstance(node, FUNCTIONS)
        and node.name.startswith("test_")
        and "never_fails" not in node.name  # what it calls raises
        and not _can_fail(node)
    ]
    assert not empty


CHECKS = re.compile(r"assert|raises|until|expect|verify|check|timeout|warns|fail|contract")


def _can_fail(node: ast.AST) -> bool:
    """Whether it asserts, or calls something whose name says that it checks."""
    return any(
        isinstance(n, ast.Assert)
        or (isinstance(n, ast.Call) and CHECKS.search(ast.unparse(n.func)) is not None)
        for n in ast.walk(node)
    )
