"""A spawner for tests: settings, a fake meter, and a runtime whose agents are stand-ins."""

import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infra.kit import ids, migrate
from infra.kit.clock import Clock
from infra.kit.db import Database
from spawner import layout, wire
from spawner.app import create_app, running
from spawner.choose import Chosen
from spawner.client import SpawnerClient
from spawner.runtimes.process import ProcessRuntime
from spawner.settings import Settings
from spawner.wiring import Spawner
from tests import quickly
from tests.spawner import agents
from tests.spawner.meter import FakeMeter, serving
from tests.waiting import until

SECRET = "a-service-secret-for-tests-only-0123456789"
AGENTS = str(Path(agents.__file__))


@dataclass
class House:
    """Where everything of one test's spawner is; `work()` runs one, as often as the test likes."""

    root: Path
    deployment: str
    database_url: str
    meter: FakeMeter
    kind: str = "good"
    overrides: dict[str, Any] = field(default_factory=dict)

    def settings(self, **more: Any) -> Settings:
        values: dict[str, Any] = {
            "deployment": self.deployment,
            "service_secret": SECRET,
            "deployment_secret": SECRET[::-1],
            "database_url": self.database_url,
            "listen": f"unix://{self.root}/control/spawner.sock",
            "meter_url": f"unix://{self.root}/control/meter.sock",
            "sockets_dir": self.root / "s",
            "tenants_dir": self.root / "tenants",
            "poll_s": 0.2,
            "stop_grace_s": 0.4,
            "stop_on_exit": True,
        }
        return Settings(**{**values, **self.overrides, **more})

    async def migrate(self) -> None:
        """Makes the database, or brings it to its newest shape."""
        db = Database(self.database_url)
        await migrate.upgrade(db, "spawner")
        await db.close()

    def processes(self, settings: Settings, kind: type[ProcessRuntime] = ProcessRuntime) -> Chosen:
        """Child processes that run a stand-in instead of the agent."""
        assert settings.tenants_dir is not None
        where = layout.Layout(settings.sockets_dir, layout.own())
        runtime = kind(
            tenants_dir=settings.tenants_dir,
            layout=where,
            deployment=settings.deployment,
            command=[sys.executable, "-I", AGENTS, self.kind],
        )
        return Chosen(runtime, where, [], runtime.close)

    @asynccontextmanager
    async def work(
        self,
        *,
        clock: Clock | None = None,
        runtime_class: type[ProcessRuntime] = ProcessRuntime,
        **more: Any,
    ) -> AsyncIterator["Working"]:
        """A spawner at work, served on its real socket, with a client."""
        settings = self.settings(**more)
        # With a runtime of the settings' choice the spawner probes for itself.
        chosen = self.processes(settings, runtime_class) if settings.runtime == "auto" else None
        async with (
            running(settings, chosen=chosen, clock=clock) as spawner,
            quickly.serving(create_app(spawner), settings.listen) as url,
        ):
            client = SpawnerClient(url, SECRET)
            try:
                yield Working(self, spawner, client)
            finally:
                await client.close()

    def data(self, tenant: str) -> Path:
        """The tenant's data directory, made."""
        path = self.root / "tenants" / tenant
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path

    def starts(self, tenant: str) -> list[str]:
        """One line a start that an agent lived to see."""
        log = self.root / "tenants" / tenant / "starts.log"
        return log.read_text().splitlines() if log.exists() else []


@dataclass
class Working:
    """A spawner at work and its client."""

    house: House
    spawner: Spawner
    client: SpawnerClient

    async def reach(self, tenant: str, state: wire.State, timeout_s: float = 10) -> wire.Instance:
        """The instance once it is in `state`."""

        async def there() -> bool:
            return (await self.client.instance(tenant)).state == state

        await until(there, timeout_s=timeout_s, what=f"{tenant} in {state}")
        return await self.client.instance(tenant)

    async def ready(self, tenant: str) -> wire.Instance:
        """Wakes the tenant and waits until it is there."""
        await self.client.wake(tenant, "message")
        return await self.reach(tenant, "ready")

    def pid(self, tenant: str) -> int:
        """The agent's process."""
        return int(self.house.starts(tenant)[-1].split()[1])


@asynccontextmanager
async def house(root: Path, deployment: str, database: Path) -> AsyncIterator[House]:
    """A house under `root` with a copy of `database`, a migrated one, and its meter answering."""
    (root / "control").mkdir(parents=True)
    shutil.copy(database, root / "spawner.db")
    made = House(root, deployment, f"sqlite:///{root}/spawner.db", FakeMeter())
    async with serving(f"unix://{root}/control/meter.sock", SECRET) as meter:
        made.meter = meter
        yield made


def tenant() -> str:
    """A tenant that nobody has heard of."""
    return ids.tenant_id()


def gone(pid: int | str) -> bool:
    """Whether the process has ended; one that only waits to be buried has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
