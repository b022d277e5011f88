"""A stop, from `stopping` to `stopped`. It is tried until it is done: nothing else leads out of there."""

import asyncio
import logging
from dataclasses import dataclass

from infra.kit.clock import Clock
from infra.kit.errors import AlcoveError
from spawner import states
from spawner.faults import Faults
from spawner.instances import Row
from spawner.journal import Journal
from spawner.undo import Undo

log = logging.getLogger(__name__)
_TRY_AGAIN_S = 2.0
_ENGINE_S = 20.0  # what an engine may need beyond the grace before it is asked again


@dataclass(frozen=True, slots=True)
class Stop:
    """Carries one row from `stopping` to `stopped`."""

    journal: Journal
    undo: Undo
    faults: Faults
    clock: Clock
    grace_s: float

    async def __call__(self, row: Row) -> None:
        """One try; a failed one is logged, and the driver comes again. Raises Moved only."""
        self.faults.at("stopping")
        late = row.deadline_at is not None and self.clock.now_at() > row.deadline_at
        grace_s = 0.0 if late else self.grace_s
        try:
            async with asyncio.timeout(grace_s + _ENGINE_S):
                await self.undo(row.tenant, row.generation, grace_s=grace_s)
        except (TimeoutError, AlcoveError, OSError) as error:
            log.warning("stop failed; it will be tried again", extra={"error": str(error)})
            await asyncio.sleep(_TRY_AGAIN_S)
            return
        async with self.journal.transaction(row.tenant) as tx:
            await states.to_stopped(tx, row)
        self.faults.at("stopped")
