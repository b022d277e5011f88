"""The services as child processes: started in order, awaited, started again when they die, stopped in order.

What the children are is not known here.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.cli.home import Trouble
from infra.kit.client import ServiceClient
from infra.kit.errors import AlcoveError

_LOG_BYTES = 10 << 20
_TAIL_LINES = 15
_CALM_S = 60.0
_LONGEST_DELAY_S = 30.0
EX_CONFIG = 78


@dataclass(frozen=True)
class Spec:
    """One service: how it is started, where it says that it is ready.

    `stop_s`: how long it is sure to have to end; `needed`: whether the rest is worth starting without it.
    """

    name: str
    title: str
    command: Sequence[str]
    environment: Mapping[str, str]
    url: str
    ready_path: str = "/readyz"
    ready_s: float = 60.0
    stop_s: float = 2.0
    needed: bool = True


class Child:
    """A running Spec. `tell` gets a sentence whenever a person should know something."""

    def __init__(self, spec: Spec, logs: Path, tell: Callable[[str], None]) -> None:
        self.spec = spec
        self.log = logs / f"{spec.name}.log"
        self._tell = tell
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        running = self._process is not None and self._process.returncode is None
        return self._process.pid if running and self._process else None

    async def start(self) -> None:
        """Start it, wait until it is ready. Raises Trouble with the end of its log when it does not get there."""
        await self._spawn()
        started = time.monotonic()
        client = ServiceClient(self.spec.url, "", name=self.spec.name)
        try:
            while not await _ready(client, self.spec.ready_path):
                if self.pid is None:
                    raise Trouble(self._ended("ended while it started"))
                if time.monotonic() - started > self.spec.ready_s:
                    raise Trouble(self._ended(f"was not ready after {self.spec.ready_s:.0f} s"))
                await asyncio.sleep(0.05)
        finally:
            await client.close()

    def keep(self) -> None:
        """From now on, start it again whenever it ends: at once, then ever slower while it keeps ending."""
        self._keeper = asyncio.create_task(self._keep(), name=f"keep {self.spec.name}")

    async def stop(self, within_s: float | None = None) -> None:
        """End it: SIGTERM, then after `within_s` (else its `stop_s`) SIGKILL for it and all that it left."""
        within_s = self.spec.stop_s if within_s is None else within_s
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._process is None:
            return
        if self.pid is not None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), within_s)
            except TimeoutError:
                self._tell(f"{self.spec.title} did not end within {within_s:.1f} s: killed")
        self.kill()
        await self._process.wait()

    def kill(self) -> None:
        """End it and its group at once."""
        if self._process is not None:
            # The group outlives its leader while a member is left; without one there is none.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _spawn(self) -> None:
        if self.log.exists() and self.log.stat().st_size > _LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *_dying_with_us(),
                *self.spec.command,
                env=self.spec.environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=asyncio.subprocess.STDOUT,
                # A group of its own: Ctrl-C in the terminal reaches the supervisor alone, which
                # then ends its children in order.
                start_new_session=True,
            )

    async def _keep(self) -> None:
        delay_s = 0.25
        while self._process is not None:
            started = time.monotonic()
            code = await self._process.wait()
            delay_s = 0.25 if time.monotonic() - started > _CALM_S else delay_s
            self._tell(
                f"{self.spec.title} ended ({_how(code)}); starting it again. Log: {self.log}"
            )
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, _LONGEST_DELAY_S)
            await self._spawn()

    def _ended(self, what: str) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
        end = f" ({_how(self._process.returncode)})" if self._process and self.pid is None else ""
        return "\n".join([f"{self.spec.title} {what}{end}. The end of {self.log}:", *lines])


async def stop_in_order(children: Sequence[Child], *, by_s: float) -> None:
    """Stop each child once the one before it is gone, all by `by_s` (monotonic).

    Each may use whatever time those behind it are not sure of: a busy machine kills nobody who would end.
    """
    for place, child in enumerate(children):
        behind_s = sum(other.spec.stop_s for other in children[place + 1 :])
        await child.stop(max(child.spec.stop_s, by_s - behind_s - time.monotonic()))


def _dying_with_us() -> list[str]:
    launcher = Path(__file__).with_name("child.py")
    return [sys.executable, "-I", "-S", str(launcher), str(os.getpid())]


async def _ready(client: ServiceClient, path: str) -> bool:
    try:
        await client.call("GET", path, timeout_s=3)
    except AlcoveError:
        return False
    return True


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return "bad configuration" if code == EX_CONFIG else f"exit code {code}"


async def once(
    command: Sequence[str], environment: Mapping[str, str], *, capture: bool = False
) -> tuple[int, str]:
    """Run a command to its end; its exit code, and its output where `capture` (else it is shown).

    Cancelled, it ends the command's whole group before it returns.
    """
    process = await asyncio.create_subprocess_exec(
        *_dying_with_us(),
        *command,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE if capture else None,
        stderr=asyncio.subprocess.STDOUT if capture else None,
        start_new_session=True,
    )
    try:
        output, _ = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    return process.returncode or 0, (output or b"").decode(errors="replace")
