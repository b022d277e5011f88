"""One task for each instance in a transient state: it carries the instance to where it comes to rest.

Whoever wants something writes a state and kicks; the driver reads the state and does what follows from
it. So a restarted spawner needs no memory: it kicks every transient row.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from infra.kit import log as kit_log
from infra.kit.db import Database
from spawner import states
from spawner.instances import TRANSIENT, Row, read

log = logging.getLogger(__name__)
Step = Callable[[Row], Awaitable[None]]


class Drivers:
    """Runs at most one driver a tenant. `step` does what a transient row asks for, until it moves."""

    def __init__(self, db: Database, step: Step, at_rest: Callable[[], None]) -> None:
        self._db, self._step, self._at_rest = db, step, at_rest
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._closed = False

    def kick(self, tenant: str) -> None:
        """Says that the tenant's row may have become transient. Does not disturb a driver at work."""
        if self._closed:
            return
        if tenant in self._tasks:
            self._again.add(tenant)
            return
        task = asyncio.create_task(self._drive(tenant), name=f"drive {tenant}")
        self._tasks[tenant] = task
        task.add_done_callback(lambda done: self._ended(tenant, done))

    def interrupt(self, tenant: str) -> None:
        """Cancels what the driver is doing, and has the row read again once it has let go: that may take
        as long as a call of an engine that hangs, so nobody waits for it here."""
        task = self._tasks.get(tenant)
        if task is not None:
            task.cancel()
        self.kick(tenant)

    async def settled(self, tenant: str) -> None:
        """Returns when no driver works for the tenant."""
        while (task := self._tasks.get(tenant)) is not None:
            await asyncio.wait([task])

    async def close(self) -> None:
        """Cancels every driver; their rows stay as they are, for the next process."""
        self._closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _drive(self, tenant: str) -> None:
        with kit_log.bound(tenant=tenant):
            while True:
                self._again.discard(tenant)
                async with self._db.read() as reading:
                    row = await read(reading, tenant)
                if row is None or row.state not in TRANSIENT:
                    return
                try:
                    await self._step(row)
                except states.Moved:
                    continue

    def _ended(self, tenant: str, task: asyncio.Task[None]) -> None:
        del self._tasks[tenant]
        if not task.cancelled() and (error := task.exception()) is not None:
            # The reconciler kicks the row again; its deadline bounds how often.
            log.error("driver failed", exc_info=error, extra={"tenant": tenant})
        elif tenant in self._again:
            self._again.discard(tenant)
            self.kick(tenant)
        self._at_rest()
