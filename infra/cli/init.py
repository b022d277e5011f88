"""`alcove init`: the .env of Docker Compose, written once."""

import os
import re
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from infra.cli.home import Trouble, free_port, write_private
from infra.setup import images, say

DOCKER_SOCKET = Path("/var/run/docker.sock")
SECRETS = (
    "ALCOVE_SERVICE_SECRET",
    "ALCOVE_DEPLOYMENT_SECRET",
    "ALCOVE_GATEWAY_SEALING_KEY",
    "ALCOVE_METER_SEALING_KEY",
    "POSTGRES_PASSWORD",
    "ALCOVE_GATEWAY_DATABASE_PASSWORD",
    "ALCOVE_SPAWNER_DATABASE_PASSWORD",
    "ALCOVE_METER_DATABASE_PASSWORD",
)


def init(target: Path, public_url: str = "") -> None:
    """Write `target` unless it exists, make sure that a base image can be had, and say how to go on.

    Without an address it is loopback's, at the first port from 8000 that is free here.
    """
    if target.exists() or target.is_symlink():
        say.line(f"{target} exists and stays as it is.")
    else:
        text = content(
            public_url or os.environ.get("PUBLIC_URL") or f"http://127.0.0.1:{free_port(None)}",
            DOCKER_SOCKET,
            os.environ.get("ALCOVE_BASE_IMAGE") or _base(),
        )
        write_private(target, text)
        say.line(
            f"Wrote {target} (only you can read it). Keep a copy: data is sealed with its secrets."
        )
    if target.exists():
        say.line(f"Now: docker compose up -d --wait, then open {read(target).get('PUBLIC_URL')}")


def content(public_url: str, docker_socket: Path, base: str | None) -> str:
    """The text of a new .env. Raises Trouble for an address that no browser could open."""
    url = public_url.rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query:
        raise Trouble(f"{url!r} is no address to type: http(s)://host, or with :port")
    # Plain http is for this machine alone; https means that a proxy in front was thought of.
    bind = "0.0.0.0" if parts.scheme == "https" else "127.0.0.1"  # noqa: S104 (published by wish)
    lines = [
        "# Written once by `alcove init`. Secrets of this installation: keep a copy, show nobody.",
        f"ALCOVE_DEPLOYMENT=alcove-{secrets.token_hex(3)}",
        "",
        "# What people type, and where Docker publishes the gateway.",
        f"PUBLIC_URL={url}",
        f"BIND_ADDRESS={bind}",
        f"PORT={parts.port or 8000}",
        "",
        "# The engine's socket, and the group that may use it: given to the spawner alone.",
        f"DOCKER_SOCKET={docker_socket}",
        f"DOCKER_GID={_group(docker_socket)}",
        "",
        "# What images are built on.",
        f"ALCOVE_BASE_IMAGE={base or images.OFFICIAL_BASE}",
        "",
        *(f"{name}={secrets.token_hex(32)}" for name in SECRETS),
        "",
    ]
    return "\n".join(lines)


def read(target: Path) -> dict[str, str]:
    """The variables of a .env. Raises Trouble where there is none."""
    if not target.exists():
        raise Trouble(f"{target} is not there. Run `make init` first.")
    found = re.findall(r"^([A-Z_]+)=(.*)$", target.read_text(), re.MULTILINE)
    return dict(found)


def _group(docker_socket: Path) -> int:
    try:
        return docker_socket.stat().st_gid
    except OSError:
        say.line(
            f"  ! {docker_socket} is not there: set DOCKER_GID in .env once Docker is installed"
        )
        return 0


def _base() -> str | None:
    if images.engine_version() is None:
        say.line("  ! No Docker engine answers yet; the base image will be the official one")
        return None
    return images.base_image()
