"""Periodic jobs of one service: one list, one supervisor, one holder at a time.

A job runs in whichever process holds its lease (a row in `job_lease`), so several processes of a
service may run the same list.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sqlalchemy import BigInteger, Column, MetaData, String, Table, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from infra.kit import ids
from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from infra.kit.metrics import Metrics

log = logging.getLogger(__name__)


def lease_table(metadata: MetaData) -> Table:
    """The table that `Jobs` needs; a service declares it among its own."""
    return Table(
        "job_lease",
        metadata,
        Column("job", String(64), primary_key=True),
        Column("holder", String(32), nullable=False),
        Column("until_at", BigInteger, nullable=False),
    )


@dataclass(frozen=True, slots=True)
class Job:
    """What runs every `every_s` seconds (± 10 %). `run` must be safe to run again after a crash."""

    name: str
    every_s: float
    run: Callable[[], Awaitable[None]]
    everywhere: bool = False  # whether each process runs it, without a lease


class Jobs:
    """Runs a service's jobs until it is stopped. A job that raises is logged, counted and run again."""

    def __init__(self, db: Database, lease: Table, metrics: Metrics, jobs: list[Job]) -> None:
        self._db, self._lease, self._metrics, self._jobs = db, lease, metrics, jobs
        self._holder = ids.ulid()
        self._tasks: list[asyncio.Task[None]] = []

    def named(self, name: str) -> Job:
        """The job of that name, for whoever wants it run now: see `once`."""
        return next(job for job in self._jobs if job.name == name)

    def start(self) -> None:
        """Begins, in tasks of the running loop."""
        self._tasks = [asyncio.create_task(self._repeat(job), name=job.name) for job in self._jobs]

    async def stop(self) -> None:
        """Stops every job where it stands."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _repeat(self, job: Job) -> None:
        while True:
            await self.once(job)
            await asyncio.sleep(job.every_s * random.uniform(0.9, 1.1))  # noqa: S311

    async def once(self, job: Job) -> bool:
        """Runs `job` now if its lease can be had; answers whether it ran."""
        try:
            if not job.everywhere and not await self._take(job):
                return False
            await job.run()
        except Exception as error:
            trace = None if isinstance(error, AlcoveError) else error  # a coded error says it all
            log.error("job failed", exc_info=trace, extra={"job": job.name, "why": str(error)})
            self._metrics.job_runs.labels(job.name, "failed").inc()
            return True
        self._metrics.job_runs.labels(job.name, "done").inc()
        return True

    async def _take(self, job: Job) -> bool:
        """Takes or renews the lease, which outlives three periods."""
        table = self._lease
        async with self._db.transaction() as tx:
            now_at = await tx.now_at()
            until_at = now_at + round(job.every_s * 3000) + 1000
            values = {"holder": self._holder, "until_at": until_at}
            taken = await tx.execute(
                update(table)
                .where(
                    table.c.job == job.name,
                    or_(
                        table.c.holder == self._holder,
                        table.c.until_at < now_at,
                        # Longer than any lease: the clock was set back since it was taken.
                        table.c.until_at > until_at,
                    ),
                )
                .values(values)
            )
            if taken:
                return True
            if await tx.row(select(table.c.job).where(table.c.job == job.name)):
                return False
            try:
                async with tx.savepoint():
                    await tx.execute(insert(table).values(job=job.name, **values))
            except IntegrityError:
                return False
            return True
