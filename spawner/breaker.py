"""Stops beginning starts for a while when they fail for everybody: engine down, image gone, disk full.

What runs is never touched. After the pause one start is let through as a probe: if it comes through the
machine's part, starting goes on; if not, the pause begins again, twice as long. In memory only: a spawner
that begins anew finds out anew.
"""

import logging
from math import ceil

from infra.kit.clock import Clock
from infra.kit.errors import AlcoveError
from spawner import wire
from spawner.metrics import SpawnerMetrics

log = logging.getLogger(__name__)
# In a row, of different tenants. What an agent does wrong is mostly its tenant's own matter: it counts
# only when so many fail that no few accounts could do it to the others.
MACHINE_FAILURES, ALL_FAILURES = 3, 10
FIRST_PAUSE_S, LONGEST_PAUSE_S = 15.0, 300.0
_MACHINE_PHASES: tuple[wire.Phase, ...] = ("key", "volume", "create", "start")
_MACHINE_CODES = ("engine", "no_image", "internal", "runtime")
# Refusals that say something about one tenant and nothing about the machine.
_OWN_MATTER = ("suspended", "deleted", "storage_full")


class Breaker:
    """Counts how starts end, whoever they are for, and says how many may begin."""

    def __init__(self, clock: Clock, metrics: SpawnerMetrics) -> None:
        self._clock, self._metrics = clock, metrics
        self._machine: set[str] = set()
        self._all: set[str] = set()
        self._why = ""
        self._for_all = False  # whether the pause was for failures that were not the machine's
        self._pause_s = 0.0  # of the pause that is on, or whose probe has not ended; 0: none
        self._until_s = 0.0

    def places(self, free: int, *, under_way: int) -> int:
        """How many of `free` places may be taken while `under_way` starts have not ended."""
        if not self._pause_s:
            return free
        if self._clock.monotonic_s() < self._until_s or under_way:
            return 0
        return min(free, 1)

    def worked(self) -> None:
        """A start came to its end."""
        self._machine.clear()
        self._all.clear()
        self._go_on()

    def failed(self, tenant: str, phase: wire.Phase, problem: wire.Problem) -> None:
        """A start failed in `phase`."""
        if problem.code in _OWN_MATTER:
            return
        machine = phase in _MACHINE_PHASES or problem.code in _MACHINE_CODES
        self._all.add(tenant)
        if machine:
            self._machine.add(tenant)
        else:
            self._machine.clear()  # the machine did its part
        if self._pause_s:
            self._probed(machine, problem)
        elif len(self._machine) >= MACHINE_FAILURES or len(self._all) >= ALL_FAILURES:
            self._for_all = not machine
            self._pause(FIRST_PAUSE_S, problem)

    def paused(self) -> str | None:
        """Why nothing begins now, for the operator; None where it does."""
        if not self._pause_s:
            return None
        return (
            f"starts are paused, the last ones failed ({self._why}); next try in {self._left_s()} s"
        )

    def refusal(self) -> AlcoveError | None:
        """What somebody is told whose start cannot begin now; None where it can."""
        if not self._pause_s:
            return None
        left_s = self._left_s()
        return AlcoveError(
            "unavailable",
            f"No assistant can be woken just now. It is tried again in {left_s} s; nothing is lost.",
            reason="starts_paused",
            retry_after_s=left_s,
        )

    def _probed(self, machine: bool, problem: wire.Problem) -> None:
        if self._clock.monotonic_s() < self._until_s:
            return  # it had begun before the pause
        if machine or self._for_all:
            self._pause(min(LONGEST_PAUSE_S, 2 * self._pause_s), problem)
        else:
            self._go_on()

    def _pause(self, pause_s: float, problem: wire.Problem) -> None:
        self._why, self._pause_s = problem.message, pause_s
        self._until_s = self._clock.monotonic_s() + pause_s
        self._metrics.pauses.inc()
        self._metrics.paused.set(1)
        log.error("starts paused", extra={"seconds": pause_s, "why": self._why})

    def _go_on(self) -> None:
        if self._pause_s:
            log.info("starts go on")
        self._pause_s, self._for_all = 0.0, False
        self._metrics.paused.set(0)

    def _left_s(self) -> int:
        return max(1, ceil(self._until_s - self._clock.monotonic_s()))
