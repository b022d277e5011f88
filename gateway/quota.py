"""What the meter says of quotas, plans and models, as people see it; asked once for all who ask together."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Literal

from gateway import words
from infra.kit.clock import Clock
from infra.kit.errors import AlcoveError
from metering_proxy import wire
from metering_proxy.client import MeterClient

_FRESH_S, _PLANS_FRESH_S, _DEMO_FRESH_S = 1.0, 60.0, 5.0
GLANCE_S = 0.8
Level = Literal["ok", "near", "low", "credit", "out"]
_MEASURES = {
    "charge": ("quota", "is"),
    "tokens": ("tokens", "are"),
    "requests": ("requests", "are"),
}
_PERIODS = {"day": "today's", "month": "this month's"}


@dataclass(frozen=True, slots=True)
class Mark:
    """The highest mark that one limit's window has passed. `key` names limit, window and mark."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class View:
    """The month's charge against its limit, what grants have left beside it, and marks, the highest first."""

    plan: str
    limit_nanos: int | None
    spent_nanos: int
    held_nanos: int
    percent: int
    level: Level
    resets_at: int
    credit_nanos: int = 0
    marks: tuple[Mark, ...] = ()

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
            "credit_nanos": self.credit_nanos,
            "marks": [f"{mark.text}." for mark in self.marks],
        }

    def for_stream(self, plan_title: str) -> dict[str, Any]:
        """The state `quota` of the stream: words only, no script computes with money."""
        unlimited = self.limit_nanos is None
        first = self.marks[0] if self.marks else None
        return {
            "type": "CUSTOM",
            "name": "quota",
            "plan": plan_title,
            "percent": self.percent,
            "level": self.level,
            "spent": words.money(self.spent_nanos),
            "none_given": self.limit_nanos == 0,
            "limit": None if unlimited else words.money(self.limit_nanos),
            "left": None if unlimited else words.money(self.left_nanos),
            "credit": words.money(self.credit_nanos) if self.credit_nanos > 0 else None,
            "mark": {"key": first.key, "text": first.text} if first else None,
            "resets_at": self.resets_at,
        }


def nearness(percent: int) -> Literal["ok", "near", "low"]:
    """How close `percent` of a limit is to it, while it is not used up."""
    if percent >= 95:
        return "low"
    return "near" if percent >= 80 else "ok"


def view(quota: wire.Quota) -> View:
    """The view of the meter's answer: 100 % only when the plan's money is used up.

    `out` only when grants have nothing left either: until then calls go on, on credit.
    """
    window = quota.charge_month
    limit, spent = window.limit_nanos, window.spent_nanos
    if limit is None:
        percent = 0
    elif spent >= limit:
        percent = 100
    else:
        percent = max(0, spent * 100 // limit)
    level: Level = nearness(percent)
    if percent >= 100:
        level = "credit" if quota.credit_nanos > 0 else "out"
    return View(
        quota.plan,
        limit,
        spent,
        window.held_nanos,
        percent,
        level,
        window.resets_at,
        quota.credit_nanos,
        marks(quota.marks),
    )


def marks(passed: list[wire.Mark]) -> tuple[Mark, ...]:
    """The highest mark of each limit in words, the most pressing first."""
    highest: dict[str, wire.Mark] = {}
    for mark in sorted(passed, key=lambda each: each.percent):
        highest[mark.kind] = mark
    found = sorted(highest.values(), key=lambda each: (-each.percent, each.kind))
    return tuple(_in_words(each) for each in found)


def _in_words(mark: wire.Mark) -> Mark:
    measure, _, period = mark.kind.partition("_")
    thing, verb = _MEASURES.get(measure, (measure, "is"))
    whose = _PERIODS.get(period, "the")
    text = f"More than {mark.percent} % of {whose} {thing} {verb} used"
    return Mark(f"{mark.kind}.{mark.starts_at}.{mark.percent}", text)


@dataclass(frozen=True, slots=True)
class Glance:
    """What can be said at once. `answered`: whether the meter did; else what was known before, if anything."""

    title: str
    only_demo: bool
    answered: bool


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

    async def glance(self, plan: str) -> Glance:
        """What the chat page needs to know of plan and models, within `GLANCE_S` whatever the meter does."""
        answered = await _within(GLANCE_S, self.plans(), self.only_demo())
        known = self._plans[1] if self._plans else []
        title = next((each.title for each in known if each.name == plan), plan.capitalize())
        return Glance(title, self._demo is not None and self._demo[1], answered)

    async def _ask(self, tenant: str) -> View:
        return view(await self._meter.quota(tenant))

    def _drop_old(self, now_s: float) -> None:
        for tenant, (asked_s, _) in list(self._asking.items()):
            if now_s - asked_s >= _FRESH_S:
                del self._asking[tenant]


async def _within(most_s: float, *asked: Awaitable[object]) -> bool:
    """Whether all of `asked` were answered in time; those that were not go on, and are known the next time."""
    tasks = [asyncio.ensure_future(each) for each in asked]
    for task in tasks:
        task.add_done_callback(_taken)
    done, late = await asyncio.wait(tasks, timeout=most_s)
    return not late and all(task.exception() is None for task in done)


def _taken(done: asyncio.Future[Any]) -> None:
    """Takes a failure, also when everybody who asked has left."""
    if not done.cancelled():
        done.exception()
