"""`python -m spawner sweep`: removes every instance of this deployment, whatever the database says."""

import asyncio
import logging

from infra.kit.errors import AlcoveError
from spawner.choose import Chosen, every_runtime
from spawner.settings import Settings

log = logging.getLogger(__name__)


async def sweep(settings: Settings) -> None:
    """Removes containers, processes and socket directories; never a volume, never data."""
    runtimes = every_runtime(settings)
    try:
        for chosen in runtimes:
            await _stop_all(chosen)
        # Only now: the directories hold the records by which processes are found.
        for chosen in runtimes:
            for tenant, generation in list(chosen.layout.generations()):
                chosen.layout.remove(tenant, generation)
    finally:
        for chosen in runtimes:
            await chosen.close()


async def _stop_all(chosen: Chosen) -> None:
    try:
        found = await chosen.runtime.instances()
        await asyncio.gather(
            *(chosen.runtime.stop(one.tenant, one.generation, grace_s=0) for one in found)
        )
    except AlcoveError as error:
        # No engine, no containers: the other runtime's leftovers still go.
        log.info("not swept", extra={"runtime": chosen.runtime.name, "error": error.message})
