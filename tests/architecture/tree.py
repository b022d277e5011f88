"""The committed tree, as git sees it, and its modules, read once."""

import ast
import subprocess
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("gateway", "spawner", "metering_proxy", "agent_image", "infra")


@dataclass(frozen=True)
class Module:
    """A Python file of the project."""

    path: Path

    @property
    def name(self) -> str:
        """As it is written in an import."""
        parts = self.path.relative_to(ROOT).with_suffix("").parts
        if parts[0] == "agent_image":
            parts = parts[1:]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def where(self) -> str:
        """Its path from the root of the repository."""
        return str(self.path.relative_to(ROOT))

    @cached_property
    def text(self) -> str:
        """Its source."""
        return self.path.read_text()

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.text)

    def __hash__(self) -> int:
        return hash(self.path)


@cache
def files() -> list[Path]:
    """Every file that is committed, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [
        path
        for name in sorted(set(filter(None, listed.split("\0"))))
        if (path := ROOT / name).is_file()
    ]


@cache
def modules() -> list[Module]:
    """Every Python file, tests included."""
    return [Module(path) for path in files() if path.suffix == ".py"]


@cache
def rooms() -> list[Module]:
    """The Python files of the five rooms."""
    return [m for m in modules() if m.path.relative_to(ROOT).parts[0] in ROOMS]


def imported(module: Module) -> set[str]:
    """Names of modules that `module` imports anywhere, `from a import b` giving both `a` and `a.b`."""
    found: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found
