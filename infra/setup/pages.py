"""The pages' build: `npm ci`, then gateway/static/build.mjs, with a Node that is new enough.

The system's Node from version 20 on, else the one of requirements/node.lock in the venv. A stamp
remembers the sources that were built; with none changed a second call costs milliseconds.
"""

import hashlib
import os
import shutil
from pathlib import Path

from infra.setup import say, venv

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "gateway" / "static"
DIST = STATIC / "dist"
TEMPLATES = ROOT / "gateway" / "templates"
SYSTEM_ROOTS = Path("/etc/ssl/certs/ca-certificates.crt")
_OLDEST_NODE = 20


def build() -> None:
    """Make gateway/static/dist what the sources say. Raises StepFailed."""
    packages = _fingerprint([ROOT / "package.json", ROOT / "package-lock.json"])
    sources = _fingerprint(
        [path for path in STATIC.rglob("*") if DIST not in path.parents]
        + list(TEMPLATES.rglob("*.html"))  # they name the icons that are bundled
    )
    stamp = DIST / ".stamp"
    if stamp.exists() and stamp.read_text() == packages + sources:
        return
    environment = {**os.environ, "PATH": f"{node()}{os.pathsep}{os.environ.get('PATH', '')}"}
    if SYSTEM_ROOTS.exists():
        # Node trusts its own list; where TLS is inspected, only the system's has the inspector.
        environment.setdefault("NODE_EXTRA_CA_CERTS", str(SYSTEM_ROOTS))
    installed = ROOT / "node_modules" / ".alcove-stamp"
    if not (installed.exists() and installed.read_text() == packages):
        with say.step("Install the pages' packages (npm ci)"):
            say.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=ROOT, env=environment)
            installed.write_text(packages)
    with say.step("Build the pages"):
        say.run(["node", str(STATIC / "build.mjs")], cwd=ROOT, env=environment)
        stamp.write_text(packages + sources)


def node() -> Path:
    """The directory of a `node` ≥ 20 with its `npm`. Raises StepFailed where none can be had."""
    own = shutil.which("node")
    if own and shutil.which("npm") and _major(own) >= _OLDEST_NODE:
        return Path(own).parent
    if not venv.stamped("node"):
        with say.step(f"Install Node.js into the venv (the system has {_told(own)})"):
            venv.install("node", no_deps=True)
    return venv.VENV / "bin"


def _major(command: str) -> int:
    version = (say.output([command, "--version"]) or "").lstrip("v")
    return int(version.split(".")[0]) if version.split(".")[0].isdigit() else 0


def _told(command: str | None) -> str:
    return f"version {_major(command)}" if command else "none"


def _fingerprint(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        if path.is_file():
            digest.update(f"{path.relative_to(ROOT)}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


if __name__ == "__main__":
    say.main(build)
