"""A Docker engine for the tests: started here where none answers, with Compose v2 and buildx beside its client."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from infra.setup import debian, say

PID_FILE = Path("/run/alcove-test-dockerd.pid")
LOG = Path("/var/log/alcove-test-dockerd.log")
PLUGINS = {"compose": "docker-compose", "buildx": "docker-buildx"}
# The oldest Debian whose packages of both are version 2 and newer. They need only an old libc.
_SUITE = "trixie"


def answers() -> bool:
    """Whether an engine answers this machine's client."""
    return say.succeeds(["docker", "version", "--format", "{{.Server.Version}}"])


def start() -> None:
    """Start dockerd in the background and leave it running. Raises StepFailed with the end of its log."""
    if not shutil.which("dockerd"):
        raise say.StepFailed("dockerd is not installed")
    with say.step(f"Start a Docker engine (it stays; to end it: kill $(cat {PID_FILE}))"):
        with LOG.open("ab") as log:
            process = subprocess.Popen(
                ["dockerd"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        PID_FILE.write_text(f"{process.pid}\n")
        deadline = time.monotonic() + 60
        while not answers():
            if process.poll() is not None or time.monotonic() > deadline:
                tail = LOG.read_text(errors="replace").splitlines()[-10:]
                raise say.StepFailed("\n".join(["dockerd did not come up:", *tail]))
            time.sleep(0.2)


def plugin_works(name: str) -> bool:
    """Whether `docker <name>` (compose, buildx) exists and is version 2 (compose) or any (buildx)."""
    version = say.output(["docker", name, "version"])
    return version is not None and (name != "compose" or "v1." not in version)


def add_plugin(name: str) -> None:
    """Put Compose or buildx into the user's plugin directory, from a newer Debian. Raises StepFailed."""
    home = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "cli-plugins"
    home.mkdir(parents=True, exist_ok=True)
    package = PLUGINS[name]
    with say.step(f"Fetch docker {name}"), tempfile.TemporaryDirectory() as place:
        debian.unpack(package, _SUITE, Path(place))
        (found,) = Path(place).rglob(f"cli-plugins/{package}")
        shutil.copy2(found, home / package)
