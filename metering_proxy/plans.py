"""Plans and their limits, read from plans.toml. Which tenant has which plan is tenants.py's matter."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo

from infra.kit import money
from infra.kit.errors import AlcoveError

Measure = Literal["charge", "tokens", "requests"]
Period = Literal["minute", "day", "month"]
FREE = "free"
NO_LIMIT = 2**62
_FILE = Path(__file__).with_name("plans.toml")


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `limit` of a measure (nano-USD of charge, tokens, requests) in each calendar period."""

    measure: Measure
    period: Period
    limit: int

    @property
    def kind(self) -> str:
        """Its name, in tables and in refusals: `charge_month`."""
        return f"{self.measure}_{self.period}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan. `concurrent` None: no limit."""

    name: str
    title: str
    limits: Mapping[str, Limit]
    concurrent: int | None
    markup_ppm: int

    def limit(self, kind: str) -> int | None:
        """The limit of that name, or None."""
        found = self.limits.get(kind)
        return None if found is None else found.limit


@dataclass(frozen=True, slots=True)
class Plans:
    """Every plan by name, the free one first, and the zone of their windows."""

    zone: ZoneInfo
    by_name: Mapping[str, Plan] = field(default_factory=dict)

    def get(self, name: str) -> Plan:
        """The plan of that name. Raises `invalid` for a name that no plan has."""
        try:
            return self.by_name[name]
        except KeyError:
            raise AlcoveError("invalid", f"there is no plan {name!r}", reason="plan") from None


def load(path: Path = _FILE) -> Plans:
    """The plans in `path`. Raises ValueError, naming what is wrong."""
    raw = tomllib.loads(path.read_text())
    plans = [_plan(item) for item in raw["plan"]]
    if not plans or plans[0].name != FREE:
        raise ValueError(f"{path}: the first plan must be {FREE!r}")
    return Plans(ZoneInfo(raw.get("zone", "UTC")), {plan.name: plan for plan in plans})


def _plan(item: dict[str, Any]) -> Plan:
    names = {f"{m}_{p}": (m, p) for m in get_args(Measure) for p in get_args(Period)}
    known = {"name", "title", "concurrent", "markup_ppm"} | names.keys()
    if unknown := item.keys() - known:
        raise ValueError(f"plan {item.get('name')!r}: unknown {', '.join(sorted(unknown))}")
    limits = {
        kind: Limit(measure, period, _amount(measure, item[kind]))
        for kind, (measure, period) in names.items()
        if kind in item
    }
    return Plan(
        item["name"], item["title"], limits, item.get("concurrent"), item.get("markup_ppm", 0)
    )


def _amount(measure: Measure, value: Any) -> int:
    return money.parse_usd(value) if measure == "charge" else int(value)
