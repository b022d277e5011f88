"""The spawner's phases as a source: replayed after the cursor, followed, taken up again when cut."""

import asyncio
from collections.abc import AsyncIterator

from pydantic import ValidationError

from gateway.limits import Limits
from gateway.stream.cursor import Cursor
from infra.kit.errors import AlcoveError
from spawner.client import SpawnerClient
from spawner.wire import PhaseEvent

_LONGEST_WAIT_S = 15.0


class Phases:
    """Follows one tenant's phases for one tab. A tab without a cursor is told of this generation only."""

    def __init__(self, tenant: str, cursor: Cursor, spawner: SpawnerClient, limits: Limits) -> None:
        self._tenant, self._spawner, self._limits = tenant, spawner, limits
        self._seq = cursor.spawner_seq
        self._skip_generations_before: int | None = None

    def begin_with(self, generation: int) -> None:
        """What is the instance's generation now."""
        if self._seq == 0:
            self._skip_generations_before = generation

    async def events(self) -> AsyncIterator[PhaseEvent]:
        """The phases after the cursor; never ends."""
        wait_s = self._limits.stream_retry_s
        while True:
            try:
                async for event in self._spawner.events(self._tenant, self._seq):
                    wait_s = self._limits.stream_retry_s
                    if event.seq <= self._seq:
                        continue
                    self._seq = event.seq
                    if event.generation >= (self._skip_generations_before or 0):
                        yield event
            except (AlcoveError, ValidationError):
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
            await asyncio.sleep(wait_s)
