"""Work that goes on after its request: kept, logged when it fails, ended with the process."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from infra.kit.errors import AlcoveError

log = logging.getLogger(__name__)


class Background:
    """Holds tasks, which asyncio itself does not, until they are done."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Runs `work`; a failure is logged and ends nothing else."""
        task = asyncio.create_task(self._run(work, name), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cancels what still runs and waits for it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, work: Coroutine[Any, Any, None], name: str) -> None:
        try:
            await work
        except AlcoveError as error:
            log.warning("background work failed", extra={"work": name, "code": error.code})
        except Exception:
            log.exception("background work broke", extra={"work": name})
