"""How one process learns what another has changed: numbered notes, written with the change, polled by all.

A note's number comes from a row that its transaction locks until it commits, so numbers appear in the order of
commits and none is passed over. What a note is about is read anew from its own table.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import Literal

from sqlalchemy import delete, insert, select, update

from infra.kit.db import Database, Reading, Transaction
from metering_proxy.models import change, change_clock

_log = logging.getLogger(__name__)
Topic = Literal["tenant", "key", "provider", "own_key"]
Refresh = Callable[[Collection[str] | None], Awaitable[None]]
EVERY_S = 0.4
_KEPT_MS = 3_600_000


async def note(tx: Transaction, topic: Topic, subject: str) -> None:
    """Tells every process, once `tx` has committed, that `subject` is not what it was.

    The last act of a transaction: it holds up the next one that has something to tell.
    """
    counted = update(change_clock).values(seq=change_clock.c.seq + 1)
    seq = await tx.value(counted.returning(change_clock.c.seq))
    await tx.execute(
        insert(change).values(seq=seq, topic=topic, subject=subject, at=await tx.now_at())
    )


async def forget(tx: Transaction) -> None:
    """Deletes notes of more than an hour ago; who has slept that long reads everything anew."""
    await tx.execute(delete(change).where(change.c.at < await tx.now_at() - _KEPT_MS))


class InTurn:
    """Readings of one copy, one after another: what is read in a block is to be known when the block ends.

    An older reading that came late would forget, until the next change, what was decided meanwhile.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Reading]:
        """See `Database.read`."""
        async with self._turn, self._db.read() as reading:
            yield reading


class Changes:
    """Reads what others have noted and hands it to who keeps a copy."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._seen = 0
        self._refresh: dict[str, Refresh] = {}
        self._task: asyncio.Task[None] | None = None

    def watch(self, topic: Topic, refresh: Refresh) -> None:
        """Calls `refresh` with the subjects that have changed; None: any may have."""
        self._refresh[topic] = refresh

    async def begin(self) -> None:
        """Remembers where the notes stand, before copies are read for the first time."""
        async with self._db.read() as reading:
            self._seen = await reading.value(select(change_clock.c.seq))

    def start(self) -> None:
        """Polls, in a task of the running loop."""
        self._task = asyncio.create_task(self._run(), name="changes")

    async def close(self) -> None:
        """Stops."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def poll(self) -> None:
        """Looks once, and has everything refreshed that is not as it was."""
        async with self._db.read() as reading:
            newest = await reading.value(select(change_clock.c.seq))
            if newest == self._seen:
                return
            unseen = select(change).where(change.c.seq > self._seen, change.c.seq <= newest)
            rows = await reading.rows(unseen)
        whole = len(rows) == newest - self._seen
        for topic, refresh in self._refresh.items():
            subjects = {row["subject"] for row in rows if row["topic"] == topic}
            if subjects or not whole:
                await refresh(subjects if whole else None)
        self._seen = newest

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await self.poll()
            except Exception as error:  # the database is away: what is known serves on
                _log.warning("changes not read", extra={"error": type(error).__name__})
