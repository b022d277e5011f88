"""Verbs for an installation under Docker Compose."""

import json
import subprocess
from pathlib import Path
from typing import Any

from infra.cli.home import ROOT, Trouble
from infra.cli.init import read
from infra.setup import say

ENV_FILE = ROOT / ".env"
# The label that the spawner puts on everything it makes (docs/configuration.md: ALCOVE_DEPLOYMENT).
DEPLOYMENT_LABEL = "alcove.deployment"


def down(env_file: Path = ENV_FILE) -> None:
    """Stop tenants, then services; volumes stay. Raises Trouble, also without .env."""
    deployment = read(env_file)["ALCOVE_DEPLOYMENT"]
    with say.step("Stop the gateway and the spawner"):
        _compose(env_file, "stop", "gateway", "spawner")
    with say.step("Stop the tenants"):
        label = f"label={DEPLOYMENT_LABEL}={deployment}"
        tenants = _docker("ps", "--quiet", "--filter", label).split()
        if tenants:
            # Together, and with time to bring their turns to a safe point; the sweep has no patience.
            _docker("stop", "--time", "10", *tenants)
        sweep = ("python", "-m", "spawner", "sweep")
        _compose(env_file, "run", "--rm", "--no-deps", "-T", "spawner", *sweep)
    with say.step("Stop what is left"):
        _compose(env_file, "down")


def is_running(env_file: Path = ENV_FILE) -> bool:
    """Whether a Compose installation's gateway runs here."""
    if not env_file.exists():
        return False
    return bool(_compose(env_file, "ps", "-q", "--status=running", "gateway").strip())


def ask_gateway(*words: str, env_file: Path = ENV_FILE) -> dict[str, Any]:
    """What `python -m gateway WORDS` says in the running gateway, its last line as JSON. Raises Trouble."""
    answer = _compose(env_file, "exec", "-T", "gateway", "python", "-m", "gateway", *words)
    said: dict[str, Any] = json.loads(answer.strip().splitlines()[-1])
    return said


def _compose(env_file: Path, *arguments: str) -> str:
    return _docker("compose", "--env-file", str(env_file), *arguments)


def _docker(*arguments: str) -> str:
    command = ["docker", *arguments]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Trouble("docker is not installed") from None
    if done.returncode:
        raise Trouble(f"{done.stderr.strip()}\n{' '.join(command)} ended with {done.returncode}")
    return done.stdout
