"""Who may import whom: import-linter's contracts, the light half of the kit, and no mutual imports."""

import subprocess
import sys

import pytest

from tests.architecture.tree import ROOT, Module, imported, rooms

HEAVY = {
    "aiohttp",
    "aiosqlite",
    "alembic",
    "asyncpg",
    "cryptography",
    "fastapi",
    "opentelemetry",
    "prometheus_client",
    "pydantic",
    "sqlalchemy",
    "starlette",
}
SERVICES = ("gateway", "spawner", "metering_proxy")


def test_import_contracts_hold() -> None:
    # In a process of its own: import-linter's logging set-up disables every logger that exists.
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def light_modules() -> list[str]:
    return [
        module.name
        for module in rooms()
        if module.name.startswith("infra.kit.") and module.text.startswith('"""LIGHT.')
    ]


def loaded_by(*names: str) -> set[str]:
    """Top-level packages in sys.modules of a new process that imported `names`."""
    code = f"import sys, {', '.join(names)}; print(*{{n.partition('.')[0] for n in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'agent_image'}", "PATH": ""},
        check=True,
        capture_output=True,
        text=True,
    )
    return set(done.stdout.split())


def test_light_modules_of_the_kit_load_nothing_heavy() -> None:
    names = light_modules()
    assert {"infra.kit.unix", "infra.kit.errors", "infra.kit.sse", "infra.kit.log"} <= set(names)
    assert loaded_by(*names) & HEAVY == set()


def test_agent_loads_nothing_heavy_and_nothing_of_the_services() -> None:
    names = [
        m.name for m in rooms() if m.name.split(".")[0] == "agent" and m.name[-8:] != "__main__"
    ]
    loaded = loaded_by(*names)
    assert loaded & HEAVY == set()
    assert loaded & {"docker", *SERVICES} == set()


def test_agent_imports_only_light_modules_of_the_kit() -> None:
    allowed = {"infra", "infra.kit", *light_modules()}
    for module in rooms():
        if module.name.split(".")[0] != "agent":
            continue
        used = {n for n in imported(module) if n.split(".")[0] == "infra"}
        strange = {
            n
            for n in used
            if n not in allowed and n.rpartition(".")[0] not in allowed - {"infra", "infra.kit"}
        }
        assert not strange, f"{module.where} imports {strange}"


@pytest.mark.parametrize("caller", ["gateway", "spawner"])
def test_caller_imports_only_client_and_wire_across_a_service_border(caller: str) -> None:
    for module in rooms():
        if module.name.split(".")[0] != caller:
            continue
        for name in imported(module):
            service, _, rest = name.partition(".")
            if service in SERVICES and service != caller and rest:
                assert rest.split(".")[0] in ("client", "wire"), f"{module.where} imports {name}"


def test_no_two_modules_import_each_other() -> None:
    by_name: dict[str, Module] = {module.name: module for module in rooms()}
    graph = {
        name: {n for n in imported(module) if n in by_name and n != name}
        for name, module in by_name.items()
    }
    packages = {name for name in by_name if by_name[name].path.name == "__init__.py"}
    mutual = {
        tuple(sorted((a, b)))
        for a, targets in graph.items()
        for b in targets
        if a in graph[b] and not {a, b} & packages
    }
    assert not mutual
