"""A real agent process, to be killed and started again over the same data."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.agent.conftest import Home
from tests.agent.person import Person
from tests.waiting import until


class Process:
    """`python -m agent` over an instance's files."""

    def __init__(self, home: Home, child: asyncio.subprocess.Process) -> None:
        self._home, self.child = home, child
        self.person = Person(home.agent / "agent.sock")

    async def ready(self) -> "Process":
        """Waits for its first answer."""

        async def answers() -> bool:
            assert self.child.returncode is None, f"the agent ended with {self.child.returncode}"
            try:
                return (await self.person.ask("GET", "/healthz")).status == 200
            except OSError:
                return False

        await until(answers, timeout_s=20, what="the agent's first answer")
        return self

    async def died(self) -> int:
        """Its exit status."""
        async with asyncio.timeout(20):
            return await self.child.wait()


@asynccontextmanager
async def running(
    home: Home, fault: str | None = None, **environment: str
) -> AsyncIterator[Process]:
    """A process that is there and answers; killed at the end if it still lives. `fault`: where it kills itself."""
    (home.agent / "agent.sock").unlink(missing_ok=True)
    armed = {"ALCOVE_AGENT_FAULT": fault, "ALCOVE_TEST": "1"} if fault else {}
    log = (home.data / "log").open("ab")
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "agent",
        env={**os.environ, **home.environment(), **armed, **environment}, stdout=log, stderr=log,
    )  # fmt: skip
    log.close()
    try:
        yield await Process(home, child).ready()
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()
