"""Parts of a machine that some tests need: how each is found, what brings it, what is lost without it."""

import os
import shutil
from collections.abc import Callable
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


PARTS = (
    Part(
        "Docker Engine",
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
        "needed only where no image registry answers: apt-get install mmdebstrap",
        "-m docker, -m compose",
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
        lambda: shutil.which("chromium") is not None,
        ("chromium",),
        "apt-get install chromium",
        "-m browser",
    ),
)


def provide() -> list[str]:
    """Bring what is missing where this may be done, and name the rest; what stays missing."""
    missing = [part for part in PARTS if not part.present()]
    if missing and debian.is_here() and os.environ.get("ALCOVE_SETUP") != "0":
        names = [package for part in missing for package in part.packages]
        say.line(f"This machine lacks {', '.join(part.name for part in missing)}.")
        say.line(f"Installing the system packages {' '.join(names)} (ALCOVE_SETUP=0 forbids it).")
        debian.install(names)
        missing = [part for part in PARTS if not part.present()]
    lost = [f"{part.name} is missing → {part.remedy} (not run: {part.tests})" for part in missing]
    lost += _engine() if not any(part.name == "Docker Engine" for part in missing) else []
    for sentence in lost:
        say.line(f"  ! {sentence}")
    return lost


def _engine() -> list[str]:
    """Start the engine where none answers, and give its client Compose v2 and buildx."""
    may = os.getuid() == 0 and os.environ.get("ALCOVE_SETUP") != "0"
    if not engine.answers():
        if not may:
            return ["No Docker engine answers → start it (not run: -m docker, -m compose)"]
        engine.start()
    lost = []
    for name in engine.PLUGINS:
        if engine.plugin_works(name):
            continue
        if may and debian.is_here():
            engine.add_plugin(name)
        elif name == "compose":
            lost.append("docker compose is missing → install Compose v2 (not run: -m compose)")
    return lost
