"""Plans and their limits, read from plans.toml. Which tenant has which plan is tenants.py's matter."""

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast, get_args

from infra.kit import money
from infra.kit.errors import AlcoveError
from metering_proxy.egress.rules import Rules, rules
from metering_proxy.ledger import windows
from metering_proxy.ledger.windows import Calendar, Period, Rolling, Spans

Measure = Literal["charge", "tokens", "requests"]
Anchor = Literal["calendar", "rolling"]
FREE = "free"
NO_LIMIT = 2**62
MOST = 2**53
_MOST_PPM = 10**9
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
FILE = Path(__file__).with_name("plans.toml")


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `limit` of a measure (nano-USD of charge, tokens, requests) in each period."""

    measure: Measure
    period: Period
    limit: int

    @property
    def kind(self) -> str:
        """Its name, in tables and in refusals: `charge_month`."""
        return f"{self.measure}_{self.period}"

    @classmethod
    def of(cls, kind: str, limit: int) -> "Limit":
        """The limit of that name."""
        measure, _, period = kind.partition("_")
        return cls(cast(Measure, measure), cast(Period, period), limit)


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan. `concurrent` None: no limit. `version`: which reading of the file it comes from."""

    name: str
    title: str
    limits: Mapping[str, Limit]
    concurrent: int | None
    markup_ppm: int
    calendar: Calendar
    anchor: Anchor = "calendar"
    version: str = ""
    egress: Rules | None = None
    models: tuple[str, ...] = ("*",)

    def offers(self, model: str) -> bool:
        """Whether a model may be called, by its canonical id."""
        return _offers(self.models, model)

    @property
    def zone(self) -> str:
        """The name of the zone of its windows."""
        return str(self.calendar.tz)

    @property
    def stamp(self) -> str:
        """Name and version, as a call keeps them."""
        return f"{self.name}@{self.version}"

    def spans(self, since_at: int) -> Spans:
        """The windows of a tenant that came to the plan at `since_at`."""
        return self.calendar if self.anchor == "calendar" else Rolling(self.calendar.tz, since_at)

    def limit(self, kind: str) -> int | None:
        """The limit of that name, or None."""
        found = self.limits.get(kind)
        return None if found is None else found.limit


@dataclass(frozen=True, slots=True)
class Plans:
    """Every plan by name, the free one first."""

    by_name: Mapping[str, Plan] = field(default_factory=dict)

    def get(self, name: str) -> Plan:
        """The plan of that name. Raises `invalid` for a name that no plan has."""
        try:
            return self.by_name[name]
        except KeyError:
            raise AlcoveError("invalid", f"there is no plan {name!r}", reason="plan") from None


@lru_cache(4096)
def _offers(patterns: tuple[str, ...], model: str) -> bool:
    return any(matches(model, pattern) for pattern in patterns)


def matches(model: str, pattern: str) -> bool:
    """Whether a pattern in small letters means that model: by its id, whatever signs are in it, or by * ? [ ]."""
    name = model.lower()
    return name == pattern or fnmatchcase(name, pattern)


def load(path: Path = FILE) -> Plans:
    """The plans in `path`. Raises ValueError, naming what is wrong."""
    text = path.read_bytes()
    raw = tomllib.loads(text.decode())
    items = raw.get("plan", [])
    if raw.keys() - {"zone", "plan"} or not isinstance(items, list):
        raise ValueError(f"{path.name}: it has a zone and tables [[plan]], and nothing beside them")
    version = hashlib.sha256(text).hexdigest()[:8]
    plans = [_plan(item, raw.get("zone", "UTC"), version) for item in items]
    if not plans or plans[0].name != FREE:
        raise ValueError(f"{path.name}: the first plan must be {FREE!r}")
    by_name = {plan.name: plan for plan in plans}
    if len(by_name) != len(plans):
        raise ValueError(f"{path.name}: a plan stands there twice")
    return Plans(by_name)


def _plan(item: dict[str, Any], zone: str, version: str) -> Plan:
    names = {f"{m}_{p}": (m, p) for m in get_args(Measure) for p in get_args(Period)}
    known = names.keys() | {
        "name", "title", "concurrent", "markup_ppm", "zone", "anchor", "egress", "models"
    }  # fmt: skip
    if unknown := item.keys() - known:
        raise ValueError(f"plan {item.get('name')!r}: unknown {', '.join(sorted(unknown))}")
    try:
        return Plan(
            name=_name(item["name"]),
            title=_title(item["title"]),
            limits={
                kind: Limit(measure, period, _amount(measure, item[kind]))
                for kind, (measure, period) in names.items()
                if kind in item
            },
            concurrent=None if "concurrent" not in item else _natural(item["concurrent"]),
            markup_ppm=_natural(item.get("markup_ppm", 0), most=_MOST_PPM),
            calendar=Calendar(windows.zone(item.get("zone", zone))),
            anchor=_anchor(item.get("anchor", "calendar")),
            version=version,
            egress=rules(item["egress"]) if "egress" in item else None,
            models=_patterns(item.get("models", ["*"])),
        )
    except (KeyError, TypeError, AttributeError, ValueError, AlcoveError) as error:
        raise ValueError(f"plan {item.get('name')!r}: {error}") from error


def _amount(measure: Measure, value: Any) -> int:
    return _natural(money.parse_usd(value) if measure == "charge" else value)


def _name(value: Any) -> str:
    """The word that rows of tenants and calls hold."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"a name is a word of at most 32 letters, digits, - and _, not {value!r}")
    return value


def _title(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"a title is what people read, not {value!r}")
    return value


def _natural(value: Any, *, most: int = MOST) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a whole number from 0 on")
    if value > most:
        raise ValueError(f"{value!r} is more than can be counted")
    return value


def _patterns(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"models is a list of patterns such as anthropic/*, not {value!r}")
    return tuple(name.lower() for name in value)


def _anchor(value: Any) -> Anchor:
    for anchor in get_args(Anchor):
        if value == anchor:
            return cast(Anchor, anchor)
    raise ValueError(f"anchor is one of {', '.join(get_args(Anchor))}, not {value!r}")
