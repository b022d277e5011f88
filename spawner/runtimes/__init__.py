"""What runs instances: the Protocol that the use cases lean on, and the values that cross it.

A runtime knows labels and processes; it knows no states, no database and no meter. All of its methods
may be repeated: a second create adopts, a second start or stop finds nothing left to do.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from spawner.layout import Owner
from spawner.plans import Limits


@dataclass(frozen=True, slots=True)
class Spec:
    """What one generation of a tenant's agent is to be. Directories are paths of this process."""

    tenant: str
    generation: int
    agent_dir: Path
    meter_dir: Path
    limits: Limits

    def digest(self, **more: object) -> str:
        """A short hash of everything that makes the instance what it is."""
        text = json.dumps({**asdict(self), **more}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Found:
    """What a runtime sees of one instance. `exit_code` is known once it has ended."""

    tenant: str
    generation: int
    running: bool
    created_at: int
    exit_code: int | None = None
    oom_killed: bool = False
    last_words: str = ""  # the end of its output, where it ended


class Runtime(Protocol):
    """Somewhere that instances run. Raises `unavailable` where the engine does not answer."""

    name: str
    wall: bool
    owner: Owner

    async def volume(self, tenant: str) -> None:
        """Makes sure that the tenant's data has a place; never empties or replaces one."""
        ...

    async def create(self, spec: Spec) -> None:
        """Makes the instance, not yet running, in place of any older generation of the tenant.

        Raises `conflict` where a newer generation is there.
        """
        ...

    async def start(self, tenant: str, generation: int) -> None:
        """Starts what was created. Raises `not_found` where it is not there, `conflict` where it has
        already ended."""
        ...

    async def stop(self, tenant: str, generation: int, *, grace_s: float) -> None:
        """Ends and removes that generation: asks, waits `grace_s`, kills. Returns once it is proven gone."""
        ...

    async def instances(self, tenant: str | None = None) -> list[Found]:
        """Every instance of this deployment (or of one tenant), running or not."""
        ...

    async def stored(self, most_bytes: Mapping[str, int]) -> dict[str, int]:
        """Bytes that these tenants' data takes, counted no further than a little past `most_bytes`; who
        cannot be measured is missing."""
        ...

    def deaths(self) -> AsyncIterator[str]:
        """Tenants whose instance may have ended: a hint that arrives soon, may be wrong or missing."""
        ...
