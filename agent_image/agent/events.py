"""The event log's readers: they are woken by commits and read what was committed, never anything else."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from agent.store import events
from agent.store.database import Database, Tx

_PAGE = 500


class Log:
    """Lets many readers follow the log, each at its own pace. What they get was read from the database."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._wakes: set[asyncio.Event] = set()
        self._left = asyncio.Event()
        self._closed = False
        self._last_seq = 0
        db.committed = self._committed

    async def start(self) -> None:
        """Learns where the log stands."""
        self._last_seq = await self._db.read(events.last_seq)

    async def close(self, timeout_s: float) -> None:
        """Ends every reader once it has been given what is there; a stuck one is waited for `timeout_s`."""
        self._closed = True
        self._wake()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._wakes:
                    self._left.clear()
                    await self._left.wait()

    @property
    def readers(self) -> int:
        """How many follow now."""
        return len(self._wakes)

    async def position(self) -> tuple[str, int]:
        """The log's epoch and its newest number."""
        return await self._db.read(lambda tx: (events.epoch(tx), events.last_seq(tx)))

    async def can_follow(self, epoch: str, seq: int) -> bool:
        """Whether everything behind `seq` of that epoch is still here."""

        def whole(tx: Tx) -> bool:
            here = events.epoch(tx) == epoch
            return here and events.first_seq(tx) - 1 <= seq <= events.last_seq(tx)

        return await self._db.read(whole)

    async def follow(
        self, seq: int, heartbeat_s: float
    ) -> AsyncGenerator[list[tuple[int, str]], None]:
        """Everything behind `seq`, in order, as it is committed; an empty list after a silent `heartbeat_s`."""
        wake = asyncio.Event()
        self._wakes.add(wake)
        try:
            while True:
                wake.clear()
                found: list[tuple[int, str]] = []
                if self._last_seq > seq:
                    found = await self._after(seq)
                if found:
                    seq = found[-1][0]
                    yield found
                    continue
                if self._closed:
                    return
                try:
                    async with asyncio.timeout(heartbeat_s):
                        await wake.wait()
                except TimeoutError:
                    yield []
        finally:
            self._wakes.discard(wake)
            self._left.set()

    async def _after(self, seq: int) -> list[tuple[int, str]]:
        return await self._db.read(lambda tx: events.after(tx, seq, _PAGE))

    def _committed(self, seq: int) -> None:
        self._last_seq = max(self._last_seq, seq)
        self._wake()

    def _wake(self) -> None:
        for wake in self._wakes:
            wake.set()
