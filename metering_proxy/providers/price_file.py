"""The reviewed models and prices of prices.toml. Nothing is fetched.

Strict: a word that is not known, a value of another sort, a rate that is missing or a row that stands there twice
is refused with the whole file, since what is guessed here is billed.
"""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar, get_args

from infra.kit import money
from metering_proxy.plans import MOST
from metering_proxy.pricing import Price, Rates, SearchPer
from metering_proxy.providers.kinds import kinds
from metering_proxy.wires.wire import Kind

T = TypeVar("T")
FILE = Path(__file__).parents[1] / "prices.toml"
_RATES = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
_OTHER_RATES = (
    "audio_input", "audio_output", "web_search", "image_input", "image_output", "request",
    "audio_cache_read",
)  # fmt: skip
# Without these a model of that kind would be free in part; `"0"` says that it is.
_NEEDED = {"chat": ("input", "output"), "embedding": ("input",)}
_SEARCHES = ("web_search_per", "web_search_most")
_UNITS = ("per_image", "per_minute", "per_million_characters")
_LEAST = "per_minute_least_seconds"
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


KnownModels = Mapping[str, tuple[KnownModel, ...]]


def load(path: Path = FILE) -> KnownModels:
    """The models in `path` by kind of provider. Raises ValueError, naming what is wrong."""
    table = tomllib.loads(path.read_text())
    items = table.get("model")
    if (
        table.keys() != {"model"}
        or not isinstance(items, list)
        or not all(isinstance(item, dict) for item in items)
    ):
        raise ValueError(f"{path.name}: it has tables [[model]], and nothing beside them")
    found: dict[str, list[KnownModel]] = {}
    names: set[tuple[str, str]] = set()
    for item in items:
        try:
            provider, model = _one_of(item["provider"], kinds()), _model(item)
            for name in (model.facts.id, *model.facts.aliases):
                if (provider, name.lower()) in names:
                    raise ValueError(f"{name} stands there twice")
                names.add((provider, name.lower()))
            found.setdefault(provider, []).append(model)
        except KeyError as error:
            raise ValueError(f"{path.name}: {item.get('id')}: {error} is missing") from error
        except (ValueError, TypeError, AttributeError, ArithmeticError) as error:
            raise ValueError(f"{path.name}: {item.get('id')}: {error}") from error
    return {provider: tuple(models) for provider, models in found.items()}


def _model(item: dict[str, Any]) -> KnownModel:
    _check_words(item, _MODEL_FIELDS)
    kind: Kind = _one_of(item.get("kind", "chat"), get_args(Kind))
    context = _count(item["context_tokens"])
    demo = _flag(item.get("demo", False))
    facts = ModelFacts(
        id=_text(item["id"]),
        kind=kind,
        aliases=tuple(_text(name) for name in _list(item.get("aliases", []))),
        context_tokens=context,
        bound_tokens=_count(item.get("bound_tokens", context)),
        max_output_tokens=_count(item.get("max_output_tokens", 0), least=int(kind == "chat")),
        image_tokens=None if "image_tokens" not in item else _count(item["image_tokens"]),
        tools=_flag(item.get("tools", kind == "chat")),
        demo=demo,
        default=_flag(item.get("default", False)),
        capped=not demo,
        profile=item.get("profile"),
    )
    prices = [_price(f"{item['provider']}/{facts.id}", kind, row) for row in _list(item["price"])]
    if not prices or len({price.id for price in prices}) != len(prices):
        raise ValueError("a model has prices, one from a day on")
    return KnownModel(facts, tuple(sorted(prices, key=lambda price: price.from_at)))


def _price(model: str, kind: Kind, row: dict[str, Any]) -> Price:
    _check_words(
        row, {"from", "tiers", "long_context", _LEAST, *_SEARCHES, *_RATES, *_OTHER_RATES, *_UNITS}
    )
    if _LEAST in row and ("per_minute" not in row or len(row.keys() & set(_UNITS)) > 1):
        raise ValueError(f"{_LEAST} is for a price by the minute alone")
    if missing := [name for name in _NEEDED.get(kind, ()) if name not in row]:
        raise ValueError(f'no {missing[0]} in its price, and free is "0"')
    if row.keys().isdisjoint((*_RATES, *_OTHER_RATES, *_UNITS)):
        raise ValueError("nothing in its price has one")
    day = row["from"]
    if type(day) is not date:  # a moment of a day is a date to Python
        raise ValueError(f"from is a day such as 2026-01-31, not {day!r}")
    long = row.get("long_context")
    if long is not None:
        _check_words(long, {"above", *_RATES, *_OTHER_RATES})
    return Price(
        id=f"{model}@{day.isoformat()}",
        from_at=round(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000),
        rates=_rates(row),
        tiers={name: _factor(factor) for name, factor in row.get("tiers", {}).items()},
        long_above=_count(long["above"]) if long else None,
        # What a long request does not say of itself costs what it costs in a short one.
        long_rates=_rates({**row, **long}) if long else None,
        units=_units(row),
        units_least=1000 * _count(row[_LEAST]) if _LEAST in row else 0,
        **_searches(row),
    )


def _searches(row: dict[str, Any]) -> dict[str, Any]:
    """How searches are counted (Price.search_per, Price.searches_most)."""
    per, most = row.get("web_search_per", "search"), row.get("web_search_most")
    return {
        "search_per": _one_of(per, get_args(SearchPer)),
        "searches_most": None if most is None else _count(most),
    }


def _units(row: dict[str, Any]) -> dict[str, Fraction]:
    """Prices of what is not counted in tokens (Price.units)."""
    found = {f"image {kind}": Fraction(_usd(usd)) for kind, usd in row.get("per_image", {}).items()}
    if "per_minute" in row:
        found["millisecond"] = Fraction(_usd(row["per_minute"]), 60_000)
    if "per_million_characters" in row:
        found["character"] = Fraction(_usd(row["per_million_characters"]), 1_000_000)
    return found


def _rates(row: dict[str, Any]) -> Rates:
    names = [name for name in (*_RATES, *_OTHER_RATES) if name in row]
    rates = {"input": 0, **{name: _usd(row[name]) for name in names}}
    # Text from a model that is priced for images or sound alone is not free: it costs what they do.
    rates.setdefault("output", max(rates.get("image_output", 0), rates.get("audio_output", 0)))
    return Rates(**rates)


def _usd(value: Any) -> int:
    nanos = money.parse_usd(_text(value))
    if nanos > MOST:
        raise ValueError(f"{value!r} is more than can be counted")
    return nanos


def _factor(value: Any) -> Fraction:
    factor = Fraction(_text(value))
    if factor <= 0:
        raise ValueError(f"{value!r} is no factor of a price")
    return factor


def _count(value: Any, least: int = 1) -> int:
    if type(value) is not int or not least <= value <= MOST:
        raise ValueError(f"{value!r} is not a whole number from {least} on")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value or value != value.strip() or not value.isprintable():
        raise ValueError(f'{value!r} is not a text such as "1.25"')
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list")
    return value


def _one_of(value: Any, known: Collection[T]) -> T:
    if value not in known:
        raise ValueError(f"{value!r} is none of {', '.join(map(str, known))}")
    found: T = value
    return found


def _check_words(row: dict[str, Any], known: set[str]) -> None:
    if unknown := row.keys() - known:
        raise ValueError(f"unknown {', '.join(sorted(unknown))}")
