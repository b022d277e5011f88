"""The spawner as a process of its own, to be killed and started again."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from infra.kit import address
from infra.kit.errors import AlcoveError
from spawner.client import SpawnerClient
from spawner.settings import Settings
from tests import tally
from tests.spawner.house import SECRET
from tests.waiting import until


def environment(settings: Settings) -> dict[str, str]:
    """The variables that give these settings."""
    env = {name: os.environ[name] for name in ("PATH", "LANG", "DOCKER_HOST") if name in os.environ}
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        if value is not None:
            text = str(int(value)) if isinstance(value, bool) else str(value)
            env[str(field.validation_alias)] = text
    return env


@dataclass
class Program:
    """One running spawner."""

    process: asyncio.subprocess.Process
    client: SpawnerClient

    async def killed(self, timeout_s: float = 15) -> None:
        """Returns when the process has ended by SIGKILL, as at a fault point."""
        async with asyncio.timeout(timeout_s):
            assert await self.process.wait() == -signal.SIGKILL

    async def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        await self.process.wait()
        tally.count("kills")


@asynccontextmanager
async def program(
    settings: Settings, *command: str, fault: str | None = None
) -> AsyncIterator[Program]:
    """Runs `python -m <command…>` until the block ends; then SIGTERM, and it must leave in good order."""
    env = environment(settings) | {"ALCOVE_TEST": "1"}
    if fault:
        env["ALCOVE_SPAWNER_FAULT"] = fault
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", *command, env=env, stdout=sys.stderr, stderr=sys.stderr
    )
    client = SpawnerClient(settings.listen, SECRET)

    async def answers() -> bool:
        assert process.returncode is None, "the spawner ended before it answered"
        path = address.parse(settings.listen).path
        assert path is not None
        if not path.exists():
            return False
        with contextlib.suppress(AlcoveError):
            await client.host()
            return True
        return False

    try:
        await until(answers, timeout_s=30, what="the spawner's answer")
        yield Program(process, client)
    finally:
        await client.close()
        if process.returncode is None:
            process.terminate()
            async with asyncio.timeout(15):
                assert await process.wait() == 0


async def reach(client: SpawnerClient, who: str, state: str, timeout_s: float) -> None:
    """Returns once the tenant's instance is in `state`; fails after `timeout_s`."""

    async def there() -> bool:
        return (await client.instance(who)).state == state

    await until(there, timeout_s=timeout_s, what=f"{who} in {state}")
