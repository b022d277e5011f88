"""The reviewed models and prices of prices.toml. Nothing is fetched."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from infra.kit import money
from metering_proxy.pricing import Price, Rates
from metering_proxy.wires.wire import Kind

FILE = Path(__file__).parents[1] / "prices.toml"
_RATES = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
_OTHER_RATES = (
    "audio_input", "audio_output", "web_search", "image_input", "image_output", "request",
)  # fmt: skip
_UNITS = ("per_image", "per_minute", "per_million_characters")
_MODEL_FIELDS = {
    "provider", "id", "aliases", "kind", "context_tokens", "bound_tokens", "max_output_tokens",
    "image_tokens", "tools", "demo", "default", "profile", "price",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model besides its price. `bound_tokens`: the most input that any option lets it take.

    `image_tokens`: the most that one image counts; None where images are not bounded. `capped`: the
    provider itself stops at `max_output_tokens`, so a request need not say it.
    """

    id: str
    kind: Kind = "chat"
    aliases: tuple[str, ...] = ()
    context_tokens: int = 32_768
    bound_tokens: int = 32_768
    max_output_tokens: int = 4_096
    image_tokens: int | None = None
    tools: bool = True
    demo: bool = False
    default: bool = False
    capped: bool = False
    profile: Mapping[str, int | float] | None = None


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model with its prices, oldest first."""

    facts: ModelFacts
    prices: tuple[Price, ...]


Known = Mapping[str, tuple[KnownModel, ...]]


def load(path: Path = FILE) -> Known:
    """The models in `path` by kind of provider. Raises ValueError, naming what is wrong."""
    found: dict[str, list[KnownModel]] = {}
    for item in tomllib.loads(path.read_text())["model"]:
        try:
            found.setdefault(item["provider"], []).append(_model(item))
        except (KeyError, ValueError, TypeError) as error:
            raise ValueError(f"{path.name}: {item.get('id')}: {error}") from error
    return {provider: tuple(models) for provider, models in found.items()}


def _model(item: dict[str, Any]) -> KnownModel:
    if unknown := item.keys() - _MODEL_FIELDS:
        raise ValueError(f"unknown {', '.join(sorted(unknown))}")
    context = int(item["context_tokens"])
    if item.get("kind", "chat") == "chat" and item.get("max_output_tokens", 0) < 1:
        raise ValueError("a chat model needs max_output_tokens")
    facts = ModelFacts(
        id=item["id"],
        kind=item.get("kind", "chat"),
        aliases=tuple(item.get("aliases", ())),
        context_tokens=context,
        bound_tokens=item.get("bound_tokens", context),
        max_output_tokens=item.get("max_output_tokens", 0),
        image_tokens=item.get("image_tokens"),
        tools=item.get("tools", item.get("kind", "chat") == "chat"),
        demo=item.get("demo", False),
        default=item.get("default", False),
        capped=not item.get("demo", False),
        profile=item.get("profile"),
    )
    prices = [_price(f"{item['provider']}/{item['id']}", row) for row in item["price"]]
    return KnownModel(facts, tuple(sorted(prices, key=lambda price: price.from_at)))


def _price(model: str, row: dict[str, Any]) -> Price:
    known = {"from", "tiers", "long_context", *_RATES, *_OTHER_RATES, *_UNITS}
    if unknown := row.keys() - known:
        raise ValueError(f"unknown {', '.join(sorted(unknown))}")
    day: date = row["from"]
    long = row.get("long_context")
    return Price(
        id=f"{model}@{day.isoformat()}",
        from_at=round(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000),
        rates=_rates(row),
        tiers={name: Fraction(factor) for name, factor in row.get("tiers", {}).items()},
        long_above=long["above"] if long else None,
        # What a long request does not say of itself costs what it costs in a short one.
        long_rates=_rates({**row, **long}) if long else None,
        units=_units(row),
    )


def _units(row: dict[str, Any]) -> dict[str, Fraction]:
    """Prices of what is not counted in tokens (Price.units)."""
    found = {
        f"image {kind}": Fraction(money.parse_usd(usd))
        for kind, usd in row.get("per_image", {}).items()
    }
    if "per_minute" in row:
        found["millisecond"] = Fraction(money.parse_usd(row["per_minute"]), 60_000)
    if "per_million_characters" in row:
        found["character"] = Fraction(money.parse_usd(row["per_million_characters"]), 1_000_000)
    return found


def _rates(row: dict[str, Any]) -> Rates:
    names = [name for name in (*_RATES, *_OTHER_RATES) if name in row]
    return Rates(**{"input": 0, **{name: money.parse_usd(row[name]) for name in names}})
