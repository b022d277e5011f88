"""`make lock`: pin every dependency with its hashes, in files that name no registry.

agent (the tenant's image) and run (all services and the command) are subsets of dev, at the same
versions. models, embeddings and node are small files of their own, because not every machine can
or need have them; they are pinned without their dependencies, which nothing here imports.
"""

import sys
from pathlib import Path

from infra.setup import say

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "requirements"
_UV = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal"]
_STYLE = ["--python-version", "3.11", "--generate-hashes", "--no-header", "--no-annotate"]
_NO_ADDRESSES = ["--no-emit-index-url", "--no-emit-find-links"]

FROM_PYPROJECT = {
    "dev": ["dev"],
    "run": ["gateway", "spawner", "metering_proxy", "cli"],
    "agent": [],
}
FROM_INPUT = ("models", "embeddings", "node")


def lock() -> None:
    """Write every lock anew: newest versions that pyproject.toml and the .in files allow."""
    for name, extras in FROM_PYPROJECT.items():
        options = [option for extra in extras for option in ("--extra", extra)]
        if name != "dev":
            options += ["--constraints", "requirements/dev.lock"]
        _compile(name, "pyproject.toml", [*options, *(["--upgrade"] if name == "dev" else [])])
    for name in FROM_INPUT:
        _compile(name, f"requirements/{name}.in", ["--no-deps", "--upgrade"])


def _compile(name: str, source: str, options: list[str]) -> None:
    with say.step(f"Lock {name}"):
        target = ["--output-file", f"requirements/{name}.lock"]
        say.run([*_UV, *_STYLE, *_NO_ADDRESSES, *options, source, *target], cwd=ROOT)


if __name__ == "__main__":
    say.main(lock)
