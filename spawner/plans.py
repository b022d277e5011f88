"""What each plan's instance may use: memory, processor, processes, storage, and how long it may idle."""

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from infra.kit.errors import AlcoveError

DEFAULT = "free"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one instance. `cpus` counts cores, `pids` processes and threads together."""

    memory_mb: int
    cpus: float
    pids: int
    tmp_mb: int
    storage_mb: int
    idle_s: float

    @property
    def storage_bytes(self) -> int:
        """What the tenant's data may take, as disks are sold: in millions of bytes."""
        return self.storage_mb * 1_000_000


class Plans:
    """The table of plans, by name."""

    def __init__(self, limits: dict[str, Limits]) -> None:
        if DEFAULT not in limits:
            raise ValueError(f"the plan {DEFAULT!r} is missing")
        self._limits = limits

    @classmethod
    def load(cls, path: Path | None = None, *, idle_s: float | None = None) -> "Plans":
        """The table in `path` (ours by default); `idle_s` overrides every plan's idle time."""
        with (path or Path(__file__).with_name("plans.toml")).open("rb") as file:
            raw = tomllib.load(file)
        limits = {name: Limits(**values) for name, values in raw.items()}
        if idle_s is not None:
            limits = {name: replace(one, idle_s=idle_s) for name, one in limits.items()}
        return cls(limits)

    def limits(self, plan: str) -> Limits:
        """What `plan` allows; a name from a newer table than ours gets the smallest plan's limits."""
        return self._limits.get(plan, self._limits[DEFAULT])

    def require(self, plan: str) -> None:
        """Raises `invalid` where no plan has that name."""
        if plan not in self._limits:
            raise AlcoveError("invalid", f"no plan is called {plan!r}", reason="unknown_plan")
