"""An installation under Compose from cold: it comes up, loses nothing over down and up, and goes in order."""

import json
import os
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.cli import compose
from infra.cli.init import content
from infra.kit import ids
from infra.setup import engine, images
from tests.missing import lacks
from tests.waiting import until_sync

ROOT = Path(__file__).resolve().parents[3]
pytestmark = [pytest.mark.compose, pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(600)]

# Runs inside the gateway's container: the gateway is who asks the spawner.
ASK = """
import asyncio, json, os, sys
from infra.kit.client import ServiceClient
async def main():
    client = ServiceClient(os.environ["ALCOVE_SPAWNER_URL"], os.environ["ALCOVE_SERVICE_SECRET"], name="s")
    body = json.loads(sys.argv[3]) if len(sys.argv) > 3 else None
    print(json.dumps(await client.call(sys.argv[1], sys.argv[2], body=body)))
    await client.close()
asyncio.run(main())
"""


class Installation:
    """One Compose project of this test's own."""

    def __init__(self, place: Path, client: Any) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.env_file = place / "env"
        self.env_file.write_text(
            content(
                f"http://127.0.0.1:{self.port}", Path("/var/run/docker.sock"), images.base_image()
            )
        )
        values = dict(
            line.split("=", 1) for line in self.env_file.read_text().splitlines() if "=" in line
        )
        self.deployment = values["ALCOVE_DEPLOYMENT"]
        self.client = client
        self.tenant = ids.tenant_id()

    def compose(self, *arguments: str) -> str:
        command = ["docker", "compose", "--env-file", str(self.env_file), *arguments]
        clean = {name: os.environ[name] for name in ("PATH", "HOME")}
        done = subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def up(self) -> None:
        self.compose("up", "-d", "--wait")

    def spawner(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        more = [] if body is None else [json.dumps(body)]
        answer = self.compose("exec", "-T", "gateway", "python", "-c", ASK, method, path, *more)
        found: dict[str, Any] = json.loads(answer.strip().splitlines()[-1])
        return found

    def wake(self) -> dict[str, Any]:
        path = f"/instances/{self.tenant}"
        self.spawner("PUT", path, {"wake": True, "reason": "page"})
        return until_sync(
            lambda: (found := self.spawner("GET", path))["state"] == "ready" and found,
            timeout_s=60,
            what="the instance",
        )

    def containers(self) -> list[Any]:
        label = f"{compose.DEPLOYMENT_LABEL}={self.deployment}"
        found: list[Any] = self.client.containers.list(all=True, filters={"label": label})
        return found

    def volumes(self) -> list[str]:
        found = self.client.volumes.list()
        return sorted(volume.name for volume in found if self.deployment in volume.name)


@pytest.fixture
def installation(docker_client: Any, tmp_path: Path) -> Iterator[Installation]:
    if not engine.plugin_works("compose"):
        lacks(
            "no Docker Compose v2", "install the compose plugin, or run make test as root on Debian"
        )
    made = Installation(tmp_path, docker_client)
    yield made
    for container in made.containers():
        container.remove(force=True, v=True)
    made.compose("down", "-v", "--remove-orphans", "--timeout", "2")
    for name in made.volumes():
        docker_client.volumes.get(name).remove()


def test_installation_comes_up_is_found_again_and_goes_in_order(installation: Installation) -> None:
    installation.up()
    with urllib.request.urlopen(f"http://127.0.0.1:{installation.port}/readyz") as answer:
        assert answer.status == 200
    host = installation.spawner("GET", "/host")
    assert host["runtime"] == "docker"
    assert host["wall"] is True

    before = installation.wake()
    (tenant,) = installation.containers()
    assert tenant.attrs["HostConfig"]["NetworkMode"] == "none"

    installation.compose("down")
    (still,) = installation.containers()
    assert (still.id, still.status) == (tenant.id, "running")

    installation.up()
    after = installation.wake()
    assert (after["state"], after["generation"]) == ("ready", before["generation"])
    (again,) = installation.containers()
    assert again.id == tenant.id

    volumes = installation.volumes()
    compose.down(installation.env_file)
    assert installation.containers() == []
    assert installation.volumes() == volumes
    assert any(installation.tenant in name for name in volumes)
