"""How much each tenant's data takes, beside what its plan allows: measured, told, and held to.

No wall, since without a file system made for it none can be had: what an agent writes is found out by
looking. Whoever is past the limit is put to sleep and wakes again when there is less or the plan allows
more. Its owner may have it awake for a while all the same, to delete: up to a ceiling, so that what an
agent writes meanwhile is bounded too. What cannot be measured is counted, and never refused.
"""

import logging
import time
from dataclasses import dataclass

from sqlalchemy import update

from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from spawner import states
from spawner.drive import Drivers
from spawner.instances import Row, obtain, read_all
from spawner.journal import Journal
from spawner.metrics import SpawnerMetrics
from spawner.models import instance
from spawner.plans import Plans
from spawner.runtimes import Runtime

log = logging.getLogger(__name__)
EVERY_S = 30.0
WARNING = 0.8  # of what the plan allows
CLEARING_MS = 900_000  # how long an owner has to delete
_CEILING = 1.25  # of what the plan allows: nobody is awake past that
_SHARE = 50  # measuring takes no more than a fiftieth of the time


def refusal(row: Row, plans: Plans, now_at: int) -> AlcoveError | None:
    """Why the tenant may not start: its data is past what its plan allows now. None: it may."""
    stored, limit_bytes = row.stored_bytes or 0, plans.limits(row.plan).storage_bytes
    clearing = row.clearing_until_at is not None and row.clearing_until_at > now_at
    if stored <= (ceiling(limit_bytes) if clearing else limit_bytes):
        return None
    said = f"{full(limit_bytes)} and cannot wake. On your account page you can make room."
    return AlcoveError("forbidden", said, reason="storage_full")


def must_be_clearable(row: Row, plans: Plans) -> None:
    """Raises `forbidden` (reason `storage_past_ceiling`) where only whoever runs the house can make room."""
    limit_bytes = plans.limits(row.plan).storage_bytes
    if (row.stored_bytes or 0) > ceiling(limit_bytes):
        raise AlcoveError(
            "forbidden",
            f"{full(limit_bytes)}, and so much more that it may not be awake at all.",
            reason="storage_past_ceiling",
        )


def ceiling(limit_bytes: int) -> int:
    """What nobody may be awake past, and nobody is measured past."""
    return round(limit_bytes * _CEILING)


def full(limit_bytes: int) -> str:
    """The beginning of the sentence that a person reads."""
    return f"Your assistant has filled the {limit_bytes / 1e9:.1f} GB that your plan gives it"


@dataclass
class Storage:
    """Measures whoever may have changed: those awake, and those who are past their limit."""

    db: Database
    journal: Journal
    runtime: Runtime
    plans: Plans
    drivers: Drivers
    metrics: SpawnerMetrics
    stop_timeout_s: float
    _rest_until_s: float = 0.0

    async def __call__(self) -> None:
        """One round, unless the last one took so long that the next has to wait."""
        began_s = time.monotonic()
        if began_s < self._rest_until_s:
            return
        await self.round()
        took_s = time.monotonic() - began_s
        self._rest_until_s = began_s + took_s * _SHARE

    async def round(self) -> None:
        """Measures everybody who may have changed, now. Raises `unavailable`."""
        async with self.db.read() as reading:
            now_at = await reading.now_at()
            rows = [row for row in await read_all(reading) if self._may_have_changed(row, now_at)]
        wanted = {row.tenant: self.plans.limits(row.plan).storage_bytes for row in rows}
        found = await self.runtime.stored({who: ceiling(most) for who, most in wanted.items()})
        for row in rows:
            stored = found.get(row.tenant)
            as_before = stored == row.stored_bytes and refusal(row, self.plans, now_at) is None
            if stored is not None and not as_before:
                await self._note(row, stored)
        ratios = [found[who] / wanted[who] for who in found]
        self.metrics.stored(
            near=sum(WARNING <= ratio <= 1 for ratio in ratios),
            full=sum(ratio > 1 for ratio in ratios),
            unmeasured=len(wanted) - len(found),
        )

    def _may_have_changed(self, row: Row, now_at: int) -> bool:
        return row.state == "ready" or refusal(row, self.plans, now_at) is not None

    async def _note(self, row: Row, stored_bytes: int) -> None:
        """Writes it down; puts to sleep whoever is awake and past the limit."""
        try:
            async with self.journal.transaction(row.tenant) as tx:
                await tx.execute(
                    update(instance)
                    .where(instance.c.tenant == row.tenant)
                    .values(stored_bytes=stored_bytes)
                )
                now = await obtain(tx, row.tenant)
                refused = refusal(now, self.plans, await tx.now_at())
                if refused is None or now.state != "ready":
                    return
                limit_bytes = self.plans.limits(now.plan).storage_bytes
                message = f"{full(limit_bytes)}; it is put to sleep"
                await states.to_stopping(tx, now, timeout_s=self.stop_timeout_s, message=message)
        except states.Moved:
            return
        log.warning("storage full", extra={"tenant": row.tenant, "bytes": stored_bytes})
        self.drivers.kick(row.tenant)
