"""The whole house as real processes, on free ports and in directories of its own.

It starts what `alcove run` starts (docs/configuration.md), without the local models: a scripted provider
is connected instead. Each service can be killed and started again alone.
"""

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from infra.kit.address import parse
from infra.kit.client import ServiceClient
from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from metering_proxy.client import MeterClient
from metering_proxy.wire import ModelRow, NewProvider, Provider
from spawner.client import SpawnerClient
from tests import tally
from tests.databases import to_head
from tests.journeys.processes import free_port, runs, spawn
from tests.scripted import ScriptedProvider
from tests.waiting import until

SERVICES = ("metering_proxy", "spawner", "gateway")
AGENTS = 10001
_PASSED_ON = ("PATH", "LANG", "HOME", "PYTHONPATH", "DOCKER_HOST", "TMPDIR")
# So short that a test sees the end of each; the defaults are in docs/configuration.md.
SHORT = {
    "ALCOVE_METER_LEASE_S": "2",
    "ALCOVE_METER_STREAM_GRACE_S": "2",
    "ALCOVE_SPAWNER_POLL_S": "0.3",
}


@dataclass
class House:
    """Names, places and settings of one installation. `databases`: URL of each service's database."""

    root: Path
    deployment: str
    databases: dict[str, str]
    runtime: str = "process"
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sockets = Path(tempfile.mkdtemp(prefix="alc-"))
        self.port = free_port()
        self.secret = secrets.token_hex(32)
        self._deployment_secret = secrets.token_hex(32)
        self._keys = {"gateway": secrets.token_hex(32), "metering_proxy": secrets.token_hex(32)}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        (self.root / "logs").mkdir(parents=True, exist_ok=True)
        (self.root / "tenants").mkdir()
        if self.runtime == "docker" and os.geteuid() == 0:
            os.chown(self.sockets, -1, AGENTS)
        self.sockets.chmod(0o2771)
        (self.sockets / "control").mkdir(mode=0o700)
        self.meter = MeterClient(self.control("meter"), self.secret)
        self.spawner = SpawnerClient(self.control("spawner"), self.secret)

    @property
    def url(self) -> str:
        """What a person types."""
        return f"http://127.0.0.1:{self.port}"

    def control(self, name: str) -> str:
        """The control listener of the meter or the spawner."""
        return f"unix://{self.sockets}/control/{name}.sock"

    def agent_database(self, tenant: str) -> Path:
        """The file of a tenant's agent."""
        [path] = (self.root / "tenants" / tenant).glob("*.db")
        return path

    async def start(self) -> None:
        """Migrates every database and starts every service at once; returns when all are ready."""
        for service in SERVICES:
            db = Database(self.databases[service])
            await to_head(db, service)
            await db.close()
        await asyncio.gather(*(self.start_service(service) for service in SERVICES))

    async def start_service(self, service: str) -> None:
        """Starts one service and waits until it is ready."""
        with self._log(service).open("ab") as log:
            self._running[service] = spawn(self._command(service), self._environment(service), log)
        await self.ready(service)

    async def ready(self, service: str) -> None:
        """Returns when `service` says that it is ready; fails with its log when it has ended."""
        address = {"gateway": self.url, "spawner": self.control("spawner")}.get(
            service, self.control("meter")
        )

        async def answers() -> bool:
            code = self._running[service].poll()
            assert code is None, f"{service} ended with {code}:\n{self.tail(service)}"
            where = parse(address)
            if where.path is not None and not where.path.exists():
                return False
            client = ServiceClient(address, self.secret, name=service)
            try:
                await client.call("GET", "/readyz", timeout_s=2)
            except AlcoveError:
                return False
            finally:
                await client.close()
            return True

        await until(answers, timeout_s=30, what=f"the {service}'s readiness")

    def kill(self, service: str) -> None:
        """kill -9, as an oom-killer or a power cut would."""
        process = self._running.pop(service)
        process.kill()
        process.wait()
        tally.count("kills")

    @contextlib.contextmanager
    def hanging(self, service: str) -> Iterator[None]:
        """The service takes connections and answers nothing while the block runs (SIGSTOP)."""
        process = self._running[service]
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    async def stop_service(self, service: str) -> int:
        """SIGTERM; the exit code, which must come within 15 s."""
        process = self._running.pop(service)
        process.send_signal(signal.SIGTERM)
        try:
            return await asyncio.to_thread(process.wait, 15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"{service} did not stop:\n{self.tail(service)}") from None

    async def close(self) -> None:
        """Stops everything in the order gateway, spawner, meter; sweeps; removes the sockets."""
        await self.meter.close()
        await self.spawner.close()
        codes = {}
        agents = agent_pids(self)
        try:
            for service in reversed(SERVICES):
                if service in self._running:
                    codes[service] = await self.stop_service(service)
        finally:
            for process in self._running.values():
                process.kill()
                process.wait()
            if codes.get("spawner") != 0:  # it stops its tenants itself when it may
                await self._once("spawner", "sweep")
            shutil.rmtree(self.sockets, ignore_errors=True)
        left = {who: pid for who, pid in agents.items() if runs(pid)}
        assert not left, f"agents outlived their house: {left}\n{self.tails()}"
        assert set(codes.values()) <= {0, -signal.SIGTERM}, f"exit codes {codes}\n{self.tails()}"

    async def connect(self, provider: ScriptedProvider, **more: object) -> Provider:
        """Connects the scripted provider as an admin does, and makes its first model the default."""
        rows = [
            ModelRow(id=name, input_nanos=3_000_000_000, output_nanos=15_000_000_000)
            for name in provider.models
        ]
        new = NewProvider(
            kind="openai_compatible",
            name=f"scripted {secrets.token_hex(2)}",
            base_url=provider.base_url,
            key="sk-scripted-provider-key",
            default_model=provider.models[0],
            models=rows,
            make_default=True,
        )
        return await self.meter.create_provider(new.model_copy(update=more))

    async def admin_link(self) -> str:
        """A fresh one-time link that makes an admin."""
        told = json.loads((await self._once("gateway", "admin-link")).splitlines()[-1])
        return str(told["url"])

    def tail(self, service: str, lines: int = 40) -> str:
        """The end of a service's log."""
        path = self._log(service)
        return (
            "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
            if path.exists()
            else ""
        )

    def tails(self) -> str:
        """The end of every log, agents' included."""
        agents = sorted((self.root / "tenants" / ".logs").glob("*.log"))
        told = [f"--- {service}\n{self.tail(service)}" for service in SERVICES]
        told += [f"--- agent {p.stem}\n{p.read_text(errors='replace')[-3000:]}" for p in agents]
        return "\n".join(told)

    async def _once(self, service: str, verb: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *self._command(service),
            verb,
            env=self._environment(service),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        assert process.returncode == 0, f"{service} {verb} ended badly:\n{output.decode()}"
        return output.decode()

    def _command(self, service: str) -> list[str]:
        return [sys.executable, "-m", service]

    def _log(self, service: str) -> Path:
        return self.root / "logs" / f"{service}.log"

    def _environment(self, service: str) -> dict[str, str]:
        agents = AGENTS if self.runtime == "docker" else os.getuid()
        shared = {
            "ALCOVE_DEPLOYMENT": self.deployment,
            "ALCOVE_SERVICE_SECRET": self.secret,
            "ALCOVE_SOCKETS_DIR": str(self.sockets),
            "ALCOVE_AGENT_UID": str(agents),
            "ALCOVE_AGENT_GID": str(agents if self.runtime == "docker" else os.getgid()),
            "ALCOVE_TEST": "1",
        }
        own = {
            "metering_proxy": {
                "ALCOVE_METER_DATABASE_URL": self.databases["metering_proxy"],
                "ALCOVE_METER_LISTEN": self.control("meter"),
                "ALCOVE_METER_PROGRAMS_LISTEN": self.control("programs"),
                "ALCOVE_METER_LOOPBACK_PROVIDERS": ",",
            },
            "spawner": {
                "ALCOVE_SPAWNER_DATABASE_URL": self.databases["spawner"],
                "ALCOVE_SPAWNER_LISTEN": self.control("spawner"),
                "ALCOVE_SPAWNER_TENANTS_DIR": str(self.root / "tenants"),
                "ALCOVE_SPAWNER_RUNTIME": self.runtime,
                "ALCOVE_SPAWNER_STOP_ON_EXIT": "1",
                "ALCOVE_METER_URL": self.control("meter"),
                "ALCOVE_DEPLOYMENT_SECRET": self._deployment_secret,
            },
            "gateway": {
                "ALCOVE_GATEWAY_DATABASE_URL": self.databases["gateway"],
                "ALCOVE_GATEWAY_LISTEN": self.url,
                "ALCOVE_PUBLIC_URL": self.url,
                "ALCOVE_SPAWNER_URL": self.control("spawner"),
                "ALCOVE_METER_URL": self.control("meter"),
                "ALCOVE_METER_PROGRAMS_URL": self.control("programs"),
                "ALCOVE_DEPLOYMENT_SECRET": self._deployment_secret,
            },
        }[service]
        if service in self._keys:
            own["ALCOVE_SEALING_KEY"] = self._keys[service]
        passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        return {**passed, **SHORT, **shared, **own, **self.settings}


def sqlite_databases(root: Path) -> dict[str, str]:
    """A file for each service."""
    return {service: f"sqlite:///{root}/{service}.db" for service in SERVICES}


def agent_pids(house: House) -> dict[str, int]:
    """Running agents of the process runtime, by tenant."""
    found = {}
    for record in house.sockets.glob("t/*/*/process.json"):
        with contextlib.suppress(OSError, ValueError):
            told = json.loads(record.read_text())
            if told.get("pid") and runs(told["pid"]):
                found[told["tenant"]] = int(told["pid"])
    return found
