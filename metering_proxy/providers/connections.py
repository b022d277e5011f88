"""A connection and what it offers, as values: built from rows and from the price file, never changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from metering_proxy.pricing import Price, Rates
from metering_proxy.providers.kinds import Kind
from metering_proxy.providers.price_file import KnownModels, ModelFacts


@dataclass(frozen=True, slots=True)
class Model:
    """A model of a connection under its canonical id, which price, upstream and ledger share."""

    id: str
    connection: str
    facts: ModelFacts
    prices: tuple[Price, ...]

    def price(self, at: int) -> Price | None:
        """The price in force at a moment; None before the first one."""
        in_force = [price for price in self.prices if price.from_at <= at]
        return in_force[-1] if in_force else None


@dataclass(frozen=True)
class Connection:
    """A way to a provider. `local`: found on this machine or built in. `revision` grows with each change."""

    id: str
    kind: Kind
    name: str
    base_url: str
    models: tuple[Model, ...]
    key: str | None = field(default=None, repr=False)
    key_hint: str | None = None
    default_model: str | None = None
    is_default: bool = False
    enabled: bool = True
    local: bool = False
    demo: bool = False
    revision: int = 0
    probe: str | None = None
    rows: tuple[Mapping[str, Any], ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, Model]:
        """Its models by their own names in small letters, aliases included."""
        found: dict[str, Model] = {}
        for model in self.models:
            for name in (model.facts.id, *model.facts.aliases):
                found.setdefault(folded(name), model)
        return found

    def default_chat(self) -> Model | None:
        """The chat model that answers when nobody names one: the chosen one, the known default, or the first."""
        chats = [model for model in self.models if model.facts.kind == "chat"]
        chosen = [m for m in chats if self.default_model in (m.facts.id, m.id)]
        known = [m for m in chats if m.facts.default]
        return next(iter([*chosen, *known, *chats]), None)

    def headers(self, wire: str) -> list[tuple[str, str]]:
        """The headers that carry its key on a wire (`models`: when it is asked for its list)."""
        return [self.kind.key_header(wire, self.key)] if self.key else []


def folded(name: str) -> str:
    """A model's name as names are compared: a letter of ASCII in either case, all else as it is written."""
    return name.lower() if name.isascii() else name


def offered(
    connection: str, kind: Kind, known: KnownModels, rows: Sequence[Mapping[str, Any]]
) -> tuple[Model, ...]:
    """The models of a connection: those of the price file for its kind, and those that an admin entered.

    An admin's row for a known model replaces its price. `rows`: one for each model and price, with
    the columns of provider_model and provider_price.
    """
    models: dict[str, Model] = {}
    for item in known.get(kind.name, ()):
        models[item.facts.id] = Model(
            f"{connection}/{item.facts.id}", connection, item.facts, item.prices
        )
    entered: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        entered.setdefault(row["model"], []).append(row)
    for name, prices in entered.items():
        models[name] = _entered(connection, name, prices)
    return tuple(models.values())


def _entered(connection: str, name: str, rows: list[Mapping[str, Any]]) -> Model:
    canonical = f"{connection}/{name}"
    prices = sorted(
        (
            Price(
                id=f"{canonical}@{row['from_at']}",
                from_at=row["from_at"],
                rates=Rates(input=row["input_nanos"], output=row["output_nanos"]),
            )
            for row in rows
        ),
        key=lambda price: price.from_at,
    )
    context = rows[0]["context_tokens"]
    facts = ModelFacts(
        id=name,
        kind=rows[0]["kind"],
        context_tokens=context,
        bound_tokens=context,
        max_output_tokens=rows[0]["max_output_tokens"],
    )
    return Model(canonical, connection, facts, tuple(prices))
