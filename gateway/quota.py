"""What the meter says of quotas, plans and models, as people see it; asked once for all who ask together."""

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

from gateway import words
from infra.kit.clock import Clock
from infra.kit.errors import AlcoveError
from metering_proxy import wire
from metering_proxy.client import MeterClient

_FRESH_S, _PLANS_FRESH_S, _DEMO_FRESH_S = 1.0, 60.0, 5.0
Level = Literal["ok", "near", "low", "out"]


@dataclass(frozen=True, slots=True)
class View:
    """The month's charge against its limit."""

    plan: str
    limit_nanos: int | None
    spent_nanos: int
    held_nanos: int
    percent: int
    level: Level
    resets_at: int

    @property
    def left_nanos(self) -> int | None:
        """What may still be spent, not counting what running calls hold. None: no limit."""
        return None if self.limit_nanos is None else max(0, self.limit_nanos - self.spent_nanos)

    def for_page(self) -> dict[str, Any]:
        """*Quota* of gateway/templates/README.md."""
        return {
            "limit_nanos": self.limit_nanos,
            "spent_nanos": self.spent_nanos,
            "held_nanos": self.held_nanos,
            "percent": self.percent,
            "resets_at": self.resets_at,
            "level": self.level,
        }

    def for_stream(self, plan_title: str) -> dict[str, Any]:
        """The state `quota` of the stream: words only, no script computes with money."""
        unlimited = self.limit_nanos is None
        return {
            "type": "CUSTOM",
            "name": "quota",
            "plan": plan_title,
            "percent": self.percent,
            "level": self.level,
            "spent": words.money(self.spent_nanos),
            "limit": None if unlimited else words.money(self.limit_nanos),
            "left": None if unlimited else words.money(self.left_nanos),
            "resets_at": self.resets_at,
        }


def view(quota: wire.Quota) -> View:
    """The view of the meter's answer: 100 % only when nothing is left."""
    window = quota.charge_month
    limit, spent = window.limit_nanos, window.spent_nanos
    if limit is None:
        percent = 0
    elif spent >= limit:
        percent = 100
    else:
        percent = max(0, spent * 100 // limit)
    level: Level = "ok"
    if percent >= 100:
        level = "out"
    elif percent >= 95:
        level = "low"
    elif percent >= 80:
        level = "near"
    return View(quota.plan, limit, spent, window.held_nanos, percent, level, window.resets_at)


class Quotas:
    """Asks the meter; tabs and pages that ask within a second share one answer."""

    def __init__(self, meter: MeterClient, clock: Clock) -> None:
        self._meter, self._clock = meter, clock
        self._asking: dict[str, tuple[float, asyncio.Task[View]]] = {}
        self._plans: tuple[float, list[wire.Plan]] | None = None
        self._demo: tuple[float, bool] | None = None

    async def of(self, tenant: str) -> View:
        """The tenant's quota now. Raises what the meter's client raises."""
        now_s = self._clock.monotonic_s()
        known = self._asking.get(tenant)
        if known is None or now_s - known[0] >= _FRESH_S:
            known = (now_s, asyncio.create_task(self._ask(tenant)))
            known[1].add_done_callback(_taken)
            self._asking[tenant] = known
            if len(self._asking) > 1000:
                self._drop_old(now_s)
        return await asyncio.shield(known[1])

    def forget(self, tenant: str) -> None:
        """The next question is asked anew."""
        self._asking.pop(tenant, None)

    async def plans(self) -> list[wire.Plan]:
        """The plans, at most a minute old. Raises what the meter's client raises."""
        now_s = self._clock.monotonic_s()
        if self._plans is None or now_s - self._plans[0] > _PLANS_FRESH_S:
            self._plans = (now_s, await self._meter.plans())
        return self._plans[1]

    async def title(self, plan: str) -> str:
        """The plan's title; its name in capitals where the meter cannot be asked."""
        try:
            found = await self.plans()
        except AlcoveError:
            return plan.capitalize()
        return next((each.title for each in found if each.name == plan), plan.capitalize())

    async def only_demo(self) -> bool:
        """Whether only the demonstration model answers. Raises what the meter's client raises."""
        now_s = self._clock.monotonic_s()
        if self._demo is None or now_s - self._demo[0] > _DEMO_FRESH_S:
            models = [m for m in await self._meter.models() if m.alcove.kind == "chat"]
            answering = [m for m in models if m.alcove.default] or models
            self._demo = (now_s, bool(answering) and all(m.alcove.demo for m in answering))
        return self._demo[1]

    async def _ask(self, tenant: str) -> View:
        return view(await self._meter.quota(tenant))

    def _drop_old(self, now_s: float) -> None:
        for tenant, (asked_s, _) in list(self._asking.items()):
            if now_s - asked_s >= _FRESH_S:
                del self._asking[tenant]


def _taken(done: asyncio.Task[View]) -> None:
    """Takes a failure, also when everybody who asked has left."""
    if not done.cancelled():
        done.exception()
