"""What the installed genai-prices package says a model costs from which day on, in the price file's own fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

# Where its providers are called otherwise than ours.
_NAMES = {"xai": "x-ai", "moonshot": "moonshotai", "glm": "zai"}
# Its fields by ours. What it has beside these (video, citations, …) no wire of ours can ask for.
FIELDS = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write_5m": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
    "audio_input": "input_audio_mtok",
    "audio_output": "output_audio_mtok",
    "audio_cache_read": "cache_audio_read_mtok",
    "image_input": "input_image_mtok",
    "image_output": "output_image_mtok",
    "web_search": "web_searches_kcount",
    "request": "requests_kcount",
}


class Missing(Exception):
    """The package is not installed."""


@dataclass(frozen=True)
class Offer:
    """Prices from a day on (None: from whenever), in the price file's fields; US dollars, exact.

    `long_rates`: what differs where the total input is above `long_above` tokens.
    """

    since: date | None
    rates: Mapping[str, Decimal]
    long_above: int | None = None
    long_rates: Mapping[str, Decimal] = field(default_factory=dict)


@dataclass(frozen=True)
class Listed:
    """A model of the source. `offers`: oldest first. `context_tokens` None: not said."""

    id: str
    offers: tuple[Offer, ...]
    context_tokens: int | None = None

    def at(self, day: date) -> Offer | None:
        """The offer in force on a day."""
        begun = [offer for offer in self.offers if offer.since is None or offer.since <= day]
        return begun[-1] if begun else None


class Source:
    """The package's data."""

    def __init__(self, providers: Sequence[Any]) -> None:
        self._providers = {provider.id: provider for provider in providers}

    def find(self, provider: str, model: str) -> Listed | None:
        """What it says of a model under our names: by its own id first, then by its rules for names."""
        found = self._providers.get(_NAMES.get(provider, provider))
        if found is None:
            return None
        exact = [item for item in found.models if item.id == model]
        matching = exact or [item for item in found.models if item.is_match(model)]
        return _listed(matching[0]) if matching else None


def installed() -> Source:
    """The installed package. Raises Missing."""
    try:
        from genai_prices import data
    except ImportError:
        raise Missing(
            "genai-prices is not installed: in the clone, .venv/bin/pip install '.[ops]'"
        ) from None
    return Source(data.providers)


def _listed(item: Any) -> Listed:
    rows = item.prices if isinstance(item.prices, list) else [_Always(item.prices)]
    by_day: dict[date | None, list[Offer]] = {}
    for row in rows:
        # A price for hours of the day has no day: it stands beside the one for all hours.
        since = getattr(row.constraint, "start_date", None)
        by_day.setdefault(since, []).append(_offer(since, row.prices))
    days = sorted(by_day, key=lambda day: day or date.min)
    offers = tuple(_dearest(by_day[day]) for day in days)
    return Listed(item.id, offers, item.context_window)


@dataclass(frozen=True)
class _Always:
    prices: Any
    constraint: None = None


def _offer(since: date | None, prices: Any) -> Offer:
    rates, long_rates, above = {}, {}, None
    for ours, theirs in FIELDS.items():
        value = getattr(prices, theirs, None)
        if value is None:
            continue
        if not hasattr(value, "tiers"):
            rates[ours] = Decimal(value)
            continue
        rates[ours] = Decimal(value.base)
        dearest = max(value.tiers, key=lambda tier: tier.price)
        above = min(tier.start for tier in value.tiers)
        long_rates[ours] = Decimal(dearest.price)
    if not long_rates:
        return Offer(since, rates)
    return Offer(since, rates, above, long_rates)


def _dearest(offers: Sequence[Offer]) -> Offer:
    """Of prices that take turns within a day, the dearest: what is reserved must be enough at any hour."""
    first = offers[0]
    names = {name for offer in offers for name in offer.rates}
    rates = {name: max(o.rates.get(name, Decimal(0)) for o in offers) for name in sorted(names)}
    return Offer(first.since, rates, first.long_above, first.long_rates)
