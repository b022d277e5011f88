"""Agents as child processes, for machines without an engine. The same sockets, and no wall.

Each has a session of its own, so that it outlives this process and no Ctrl-C of a terminal reaches it,
and is found again by its record (records.py), which it writes itself (launch.py).
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from infra.kit.errors import AlcoveError
from spawner import data
from spawner.layout import Layout, own
from spawner.runtimes import Found, Spec, launch, records
from spawner.runtimes.records import Record

_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "LD_LIBRARY_PATH")


class ProcessRuntime:
    """See `Runtime`. `command` is what an agent is, `tenants_dir` holds each tenant's data."""

    name = "process"
    wall = False

    def __init__(
        self,
        *,
        tenants_dir: Path,
        layout: Layout,
        deployment: str,
        command: list[str] | None = None,
    ) -> None:
        self.owner = own()
        self._tenants, self._layout, self._deployment = tenants_dir, layout, deployment
        self._command = command or [sys.executable, "-m", "agent"]
        self._children: dict[tuple[str, int], int] = {}  # pids that this process must bury
        self._exit_codes: dict[tuple[str, int], int] = {}
        self._deaths: asyncio.Queue[str] = asyncio.Queue()
        self._watched: dict[tuple[str, int], int] = {}  # pidfds

    async def volume(self, tenant: str) -> None:
        """See `Runtime`."""
        (self._tenants / ".logs").mkdir(parents=True, exist_ok=True, mode=0o700)
        data.prepare(self._tenants / tenant, uid=self.owner.uid, gid=self.owner.gid)

    async def create(self, spec: Spec) -> None:
        """See `Runtime`."""
        for record in self._records(spec.tenant):
            if record.generation > spec.generation:
                raise AlcoveError("conflict", "a newer generation exists", reason="newer")
            if record.generation < spec.generation or record.pid is not None:
                await self.stop(record.tenant, record.generation, grace_s=0)
        home = self._tenants / spec.tenant
        environ = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environ |= {
            "HOME": str(home),
            "ALCOVE_AGENT_SOCKET": str(spec.agent_dir / "agent.sock"),
            "ALCOVE_AGENT_METER_URL": f"unix://{spec.meter_dir / 'meter.sock'}",
            "ALCOVE_AGENT_KEY_FILE": str(spec.meter_dir / "key"),
            "ALCOVE_AGENT_SECRET_FILE": str(spec.meter_dir / "instance_secret"),
            "ALCOVE_AGENT_DATA_DIR": str(home),
            "ALCOVE_AGENT_TENANT": spec.tenant,
            "ALCOVE_AGENT_GENERATION": str(spec.generation),
        }
        Record(
            deployment=self._deployment,
            tenant=spec.tenant,
            generation=spec.generation,
            created_at=time.time_ns() // 1_000_000,
            spec=spec.digest(command=self._command),
            command=self._command,
            directory=str(home),
            environ=environ,
        ).write(self._path(spec.tenant, spec.generation))

    async def start(self, tenant: str, generation: int) -> None:
        """See `Runtime`."""
        record = self._read(tenant, generation)
        if record is None:
            raise AlcoveError("not_found", "the instance is not there", reason="vanished")
        if record.pid is not None and not record.alive:
            raise AlcoveError("conflict", "the agent has already ended", reason="ended")
        if record.pid is None:
            record = await self._launch(record)
        self._watch(record)

    async def stop(self, tenant: str, generation: int, *, grace_s: float) -> None:
        """See `Runtime`."""
        who = (tenant, generation)
        record = self._read(tenant, generation)
        if record is not None and record.pid is not None:
            if record.alive:
                records.send(record.pid, signal.SIGTERM)
                await self._ended(record, grace_s)
            while self._alive(record):
                records.send(record.pid, signal.SIGKILL)
                await self._ended(record, 0.2)
            records.kill_session(record.pid)
        elif (unborn := self._children.get(who)) is not None:
            records.send(unborn, signal.SIGKILL)
        self._path(tenant, generation).unlink(missing_ok=True)
        self._bury(who)
        self._exit_codes.pop(who, None)

    async def instances(self, tenant: str | None = None) -> list[Found]:
        """See `Runtime`."""
        return [self._found(record) for record in self._records(tenant)]

    async def stored(self, most_bytes: Mapping[str, int]) -> dict[str, int]:
        """See `Runtime`."""
        return await asyncio.to_thread(data.sizes, self._tenants, most_bytes)

    async def deaths(self) -> AsyncIterator[str]:
        """See `Runtime`."""
        for record in self._records(None):
            self._watch(record)
        while True:
            yield await self._deaths.get()

    async def close(self) -> None:
        """Stops watching; ends nothing."""
        for who in list(self._watched):
            self._unwatch(who)

    async def _launch(self, record: Record) -> Record:
        who = (record.tenant, record.generation)
        log = str(self._log(record.tenant))
        self._children[who] = pid = os.posix_spawn(  # noqa: ASYNC221 (it returns at once)
            sys.executable,
            [sys.executable, "-I", launch.__file__, str(self._path(*who))],
            record.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
        while True:
            now = self._read(*who)
            if now is None:
                raise AlcoveError("not_found", "the instance is not there", reason="vanished")
            if now.pid is not None:
                return now
            # A launcher that found the lock taken leaves the record to the one that has it.
            if self._exit_codes.get(who, launch.EX_TEMPFAIL) != launch.EX_TEMPFAIL:
                raise AlcoveError("unavailable", f"process {pid} ended at once", reason="ended")
            await asyncio.sleep(0.01)

    def _path(self, tenant: str, generation: int) -> Path:
        return self._layout.generation(tenant, generation) / "process.json"

    def _log(self, tenant: str) -> Path:
        return self._tenants / ".logs" / f"{tenant}.log"

    def _read(self, tenant: str, generation: int) -> Record | None:
        self._bury((tenant, generation))
        record = records.read(self._path(tenant, generation))
        return record if record and record.deployment == self._deployment else None

    def _records(self, tenant: str | None) -> list[Record]:
        found = [
            self._read(whose, generation)
            for whose, generation in list(self._layout.generations())
            if tenant is None or whose == tenant
        ]
        return [record for record in found if record is not None]

    def _found(self, record: Record) -> Found:
        ended = record.pid is not None and not record.alive
        return Found(
            record.tenant,
            record.generation,
            running=record.alive,
            created_at=record.created_at,
            exit_code=self._exit_codes.get((record.tenant, record.generation)) if ended else None,
            last_words=self._last_words(record.tenant) if ended else "",
        )

    def _last_words(self, tenant: str) -> str:
        try:
            with self._log(tenant).open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - 2000))
                return log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def _alive(self, record: Record) -> bool:
        self._bury((record.tenant, record.generation))
        return record.alive

    async def _ended(self, record: Record, timeout_s: float) -> None:
        """Returns when it has ended, at the latest after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while self._alive(record) and time.monotonic() < deadline:  # noqa: ASYNC110 (the kernel's news)
            await asyncio.sleep(0.02)

    def _bury(self, who: tuple[str, int]) -> None:
        """Takes the exit code of a child of ours that has ended, as a shell counts it."""
        pid = self._children.get(who)
        if pid is None:
            return
        try:
            buried, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            buried, status = pid, 0
        if buried:
            del self._children[who]
            code = os.waitstatus_to_exitcode(status)
            self._exit_codes[who] = code if code >= 0 else 128 - code

    def _watch(self, record: Record) -> None:
        """Has the kernel say when it ends (pidfd_open(2)), whoever's child it is."""
        who = (record.tenant, record.generation)
        if record.pid is None or who in self._watched:
            return
        try:
            pidfd = os.pidfd_open(record.pid)
        except ProcessLookupError:
            self._deaths.put_nowait(record.tenant)
            return
        self._watched[who] = pidfd
        asyncio.get_running_loop().add_reader(pidfd, self._died, who)

    def _died(self, who: tuple[str, int]) -> None:
        self._unwatch(who)
        self._bury(who)
        self._deaths.put_nowait(who[0])

    def _unwatch(self, who: tuple[str, int]) -> None:
        pidfd = self._watched.pop(who)
        asyncio.get_running_loop().remove_reader(pidfd)
        os.close(pidfd)
