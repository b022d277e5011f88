"""An installation under Docker Compose of a test's own: its project, its secrets, what it made in the engine."""

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

from infra.cli import compose
from infra.cli.init import content
from infra.kit import ids
from infra.setup import images
from tests.waiting import until_sync

ROOT = Path(__file__).resolve().parents[3]

# Runs inside the gateway's container: the gateway is who asks the others.
ASK = """
import asyncio, json, os, sys
from infra.kit.client import ServiceClient
async def main():
    client = ServiceClient(os.environ[sys.argv[1]], os.environ["ALCOVE_SERVICE_SECRET"], name="s")
    body = json.loads(sys.argv[4]) if len(sys.argv) > 4 else None
    print(json.dumps(await client.call(sys.argv[2], sys.argv[3], body=body)))
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
        self.url = f"http://127.0.0.1:{self.port}"
        self.databases: dict[str, str] = {}
        self._values = values

    def compose(self, *arguments: str) -> str:
        command = ["docker", "compose", "--env-file", str(self.env_file), *arguments]
        clean = {name: os.environ[name] for name in ("PATH", "HOME")}
        done = subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def up(self) -> None:
        self.compose("up", "-d", "--wait")
        self.databases = self._databases()

    def spawner(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        return self._ask("ALCOVE_SPAWNER_URL", method, path, body)

    def meter(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        return self._ask("ALCOVE_METER_URL", method, path, body)

    def _ask(self, whom: str, method: str, path: str, body: object) -> dict[str, Any]:
        more = [] if body is None else [json.dumps(body)]
        answer = self.compose(
            "exec", "-T", "gateway", "python", "-c", ASK, whom, method, path, *more
        )
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

    def _databases(self) -> dict[str, str]:
        """The services' databases as this machine, which owns the engine's networks, can ask them."""
        container = self.client.containers.get(self.compose("ps", "-q", "postgres").strip())
        [network] = container.attrs["NetworkSettings"]["Networks"].values()
        roles = {"gateway": "gateway", "spawner": "spawner", "metering_proxy": "meter"}
        return {
            service: f"postgresql://{role}:{self._values[f'ALCOVE_{role.upper()}_DATABASE_PASSWORD']}"
            f"@{network['IPAddress']}/{role}"
            for service, role in roles.items()
        }

    def agent_database(self, tenant: str) -> Path:
        """The agent's database, in the tenant's volume."""
        [name] = [name for name in self.volumes() if tenant in name]
        [path] = Path(self.client.volumes.get(name).attrs["Mountpoint"]).glob("*.db")
        return path

    def admin_link(self) -> str:
        """A fresh one-time link that makes an admin."""
        answer = self.compose("exec", "-T", "gateway", "python", "-m", "gateway", "admin-link")
        return str(json.loads(answer.strip().splitlines()[-1])["url"])

    def remove(self) -> None:
        """Everything of it, volumes too; first who would start again what goes."""
        self.compose("stop", "--timeout", "2", "gateway", "spawner")
        for container in self.containers():
            container.remove(force=True, v=True)
        self.compose("down", "-v", "--remove-orphans", "--timeout", "2")
        for name in self.volumes():
            self.client.volumes.get(name).remove()

    def containers(self) -> list[Any]:
        label = f"{compose.DEPLOYMENT_LABEL}={self.deployment}"
        found: list[Any] = self.client.containers.list(all=True, filters={"label": label})
        return found

    def volumes(self) -> list[str]:
        found = self.client.volumes.list()
        return sorted(volume.name for volume in found if self.deployment in volume.name)
