"""Parts of a machine that some tests need: how each is found, what brings it, what is lost without it."""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.setup import debian, engine, say


@dataclass(frozen=True)
class Part:
    """Something that tests need and that pip cannot bring."""

    name: str
    present: Callable[[], bool]
    packages: tuple[str, ...]
    remedy: str
    tests: str


def _postgres() -> bool:
    return bool(shutil.which("initdb") or list(Path("/usr/lib/postgresql").glob("*/bin/initdb")))


ENGINE = "Docker Engine"
PARTS = (
    Part(
        ENGINE,
        # Its client alone is not enough: elsewhere an engine may answer that was not started here.
        lambda: bool(shutil.which("dockerd") and shutil.which("iptables")) or engine.answers(),
        ("docker.io", "iptables"),
        "install Docker Engine ≥ 20.10 and start it",
        "-m docker, -m compose",
    ),
    Part(
        "mmdebstrap",
        lambda: shutil.which("mmdebstrap") is not None,
        ("mmdebstrap",),
        "apt-get install mmdebstrap",
        "-m docker, -m compose, where no image registry answers either",
    ),
    Part(
        "PostgreSQL",
        _postgres,
        ("postgresql",),
        "apt-get install postgresql, or any other way to have initdb in /usr/lib/postgresql",
        "-m postgres",
    ),
    Part(
        "Chromium",
        lambda: bool(os.environ.get("ALCOVE_CHROMIUM") or shutil.which("chromium")),
        ("chromium",),
        "apt-get install chromium, or name one in ALCOVE_CHROMIUM",
        "-m browser",
    ),
    Part(
        "nginx",
        lambda: shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin") is not None,
        ("nginx-light",),
        "apt-get install nginx-light",
        "-m nginx",
    ),
)


def allowed() -> bool:
    """Whether this machine may be changed: as root, unless ALCOVE_SETUP=0."""
    return os.getuid() == 0 and os.environ.get("ALCOVE_SETUP") != "0"


def provide() -> list[str]:
    """Bring what is missing where this may be done, and name the rest; a sentence for each lack that stays."""
    install = debian.install if allowed() and debian.is_here() else None
    missing = bring(PARTS, install)
    lost = [f"{part.name} is missing → {part.remedy} (not run: {part.tests})" for part in missing]
    if not any(part.name == ENGINE for part in missing):
        lost += _engine()
    for sentence in lost:
        say.line(f"  ! {sentence}")
    return lost


def bring(parts: Sequence[Part], install: Callable[[list[str]], None] | None) -> list[Part]:
    """Install what is missing, after saying what and how to forbid it; the parts that are missing still."""
    missing = [part for part in parts if not part.present()]
    if not missing or install is None:
        return missing
    names = [package for part in missing for package in part.packages]
    say.line(f"This machine lacks {', '.join(part.name for part in missing)}.")
    say.line(f"Installing the system packages {' '.join(names)} (ALCOVE_SETUP=0 forbids it).")
    install(names)
    return [part for part in missing if not part.present()]


def _engine() -> list[str]:
    """Start the engine where none answers, and give its client Compose v2 and buildx; what cannot be had."""
    if not engine.answers():
        if not allowed():
            return ["No Docker engine answers → start it (not run: -m docker, -m compose)"]
        engine.start()
    lost = []
    for name in engine.PLUGINS:
        if engine.plugin_works(name):
            continue
        if allowed() and debian.is_here():
            engine.add_plugin(name)
        elif name == "compose":
            lost.append("docker compose is missing → install Compose v2 (not run: -m compose)")
    return lost
