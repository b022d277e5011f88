"""Undoing one generation: its instance proven gone, then its key taken back, then its directories."""

import logging
from dataclasses import dataclass

from spawner.faults import Faults
from spawner.keys import Keys
from spawner.layout import Layout
from spawner.runtimes import Runtime

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Undo:
    """Removes what a start made. May be repeated, and never touches the tenant's data."""

    runtime: Runtime
    keys: Keys
    layout: Layout
    faults: Faults

    async def __call__(self, tenant: str, generation: int, *, grace_s: float) -> None:
        """Returns when the instance is proven gone; raises `unavailable` where it could not be proven."""
        await self.runtime.stop(tenant, generation, grace_s=grace_s)
        self.faults.at("gone")
        await self.keys.release(tenant, generation)
        self.layout.remove(tenant, generation)
        self.faults.at("released")
