"""Tells the spawner when a person was there, not more often than it can matter."""

from gateway.background import Background
from gateway.limits import Limits
from infra.kit.clock import Clock
from spawner.client import SpawnerClient

_KEPT = 50_000


class Activity:
    """A person's last byte per tenant. A stream and its reconnections are no person."""

    def __init__(
        self, spawner: SpawnerClient, background: Background, limits: Limits, clock: Clock
    ) -> None:
        self._spawner, self._background = spawner, background
        self._limits, self._clock = limits, clock
        self._told_s: dict[str, float] = {}

    def seen(self, tenant: str) -> None:
        """A person did something; returns at once."""
        now_s = self._clock.monotonic_s()
        if now_s - self._told_s.get(tenant, float("-inf")) < self._limits.activity_report_s:
            return
        if len(self._told_s) > _KEPT:
            self._told_s.clear()
        self._told_s[tenant] = now_s
        tell = self._spawner.person_was_here(tenant, self._clock.now_at())
        self._background.start(tell, "activity")
