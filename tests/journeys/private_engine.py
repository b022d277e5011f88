"""A container engine of the test's own, beside the machine's: to be killed and begun again as one likes."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.missing import lacks
from tests.waiting import until

_MOUNTS = Path("/proc/self/mounts")
_CONTAINERD = """
version = 2
root = "ROOT/containerd"
state = "ROOT/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "ROOT/containerd.sock"
"""


@dataclass
class PrivateEngine:
    """One dockerd with directories of its own; no network, no rules of a firewall."""

    root: Path
    process: subprocess.Popen[bytes] | None = None
    _containerd: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address, as DOCKER_HOST has it."""
        return f"unix://{self.root}/engine.sock"

    async def start(self) -> None:
        """Starts it and returns when it answers. Its containerd stays between its starts, as a machine's."""
        if self._containerd is None:
            self._containerd = self._run(
                ["containerd", "--config", self._file("toml", _CONTAINERD)]
            )
            await until(lambda: self._runtime.exists(), what="the private containerd")
        command = ["dockerd", "--host", self.url, "--containerd", str(self._runtime)]
        command += ["--data-root", f"{self.root}/data", "--exec-root", f"{self.root}/exec"]
        command += ["--pidfile", f"{self.root}/pid", "--config-file", self._file("json", "{}")]
        # An engine without a bridge removes the one that it finds, which is the machine's engine's: so it
        # gets a network namespace of its own.
        apart = ["unshare", "--net"]
        self.process = self._run([*apart, *command, "--bridge", "none", "--iptables=false"])
        await until(self._answers, timeout_s=40, what="the private engine's answer")

    def kill(self) -> None:
        """kill -9 of the engine; the containers live on."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    async def stop(self) -> None:
        """SIGTERM: the engine ends its containers first."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(self.process.wait, 40)

    async def load(self, image: str) -> None:
        """Takes an image over from the machine's engine."""
        pipe = f"docker save {image} | docker --host {self.url} load"
        process = await asyncio.create_subprocess_shell(pipe, stdout=subprocess.DEVNULL)
        assert await process.wait() == 0

    async def close(self) -> None:
        """Ends it and everything that it started, and removes its directories."""
        if self.process is not None and self.process.poll() is None:
            await self.stop()
        if self._containerd is not None:
            self._containerd.terminate()
            await asyncio.to_thread(self._containerd.wait, 20)
        for pid in self._left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await until(lambda: not self._left(), what="the end of the private engine's processes")
        for line in reversed(_MOUNTS.read_text().splitlines()):
            where = line.split()[1]
            if where.startswith(f"{self.root}/"):
                subprocess.run(["umount", "--lazy", where], check=False)
        shutil.rmtree(self.root, ignore_errors=True)

    async def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.root / "log").read_text()[-2000:]
        command = ["docker", "--host", self.url, "version", "--format", "{{.Server.Version}}"]
        asked = await asyncio.create_subprocess_exec(
            *command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        return await asked.wait() == 0

    @property
    def _runtime(self) -> Path:
        return self.root / "containerd.sock"

    def _file(self, kind: str, text: str) -> str:
        """A configuration of our own, so that the machine's is not read."""
        path = self.root / f"config.{kind}"
        path.write_text(text.replace("ROOT", str(self.root)))
        return str(path)

    def _run(self, command: list[str]) -> "subprocess.Popen[bytes]":
        with (self.root / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def _left(self) -> list[int]:
        """Processes that carry our directories in their command: its containerd and the shims."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            if f"{self.root}/".encode() in _command(int(entry.name)):
                found.append(int(entry.name))
        return found


def _command(pid: int) -> bytes:
    """The command line of a process; empty for one that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@asynccontextmanager
async def private_engine(root: Path, image: str) -> AsyncIterator[PrivateEngine]:
    """An engine of one's own with `image`, while the block runs. `root` must be short and on a real disk."""
    if os.geteuid() != 0 or not shutil.which("dockerd"):
        lacks("no engine of the test's own", "run as root with Docker Engine installed")
    made = PrivateEngine(root)
    try:
        await made.start()
        await made.load(image)
        yield made
    finally:
        await made.close()
