"""The price file beside the source: which rows are to be added, and what has to be looked at before.

A row is never changed. A new price is a new row that begins on the day it was announced for, else today.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, Protocol

from metering_proxy.price_import.source import FIELDS, Listed, Offer

_MOST_TIMES = 3
_FINEST = Decimal("0.000000001")
_DEAREST = Decimal(1_000_000)


class Prices(Protocol):
    """Where published prices come from."""

    def find(self, provider: str, model: str) -> Listed | None:
        """What is known of a model."""
        ...


@dataclass(frozen=True)
class Row:
    """A price row to add; `model`: of a model that the file does not have yet, its own fields."""

    name: str
    price: Mapping[str, Any]
    model: Mapping[str, Any] | None = None


@dataclass
class Report:
    """What was found, line by line. `refused`: lines that must be looked at; then nothing is to be written."""

    rows: list[Row] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    same: int = 0

    def text(self) -> str:
        """The report for a person."""
        lines = [
            *(f"~ {line}" for line in self.changed),
            *(f"! {line}" for line in self.refused),
            *(f"? {name}: not in the source, stays as it is" for name in self.unknown),
            f"= {self.same} unchanged, {len(self.changed)} to add, {len(self.refused)} refused",
        ]
        return "\n".join(lines) + "\n"


def compare(
    models: Sequence[Mapping[str, Any]],
    prices: Prices,
    *,
    today: date,
    only: Collection[str] = (),
    add: Collection[str] = (),
    accept: Collection[str] = (),
) -> Report:
    """Compares the models of the file (`only` some, or all), and those to `add`, with what is published."""
    report = Report()
    for model in models:
        name = f"{model['provider']}/{model['id']}"
        if only and name not in only:
            continue
        listed = prices.find(model["provider"], model["id"])
        if listed is None:
            report.unknown.append(name)
        else:
            _known(report, name, model, listed, today, name in accept)
    present = {f"{model['provider']}/{model['id']}" for model in models}
    for name in add:
        if name in present:
            report.refused.append(f"{name}: is in the file already")
        else:
            _new(report, name, prices, today)
    return report


def _known(
    report: Report,
    name: str,
    model: Mapping[str, Any],
    listed: Listed,
    today: date,
    accepted: bool,
) -> None:
    """Every offer that the file does not have: the one in force today, and those announced."""
    last = max(model["price"], key=lambda row: row["from"])
    offers = [offer for offer in [listed.at(today)] if offer is not None]
    offers += [offer for offer in listed.offers if offer.since and offer.since > today]
    found = False
    for offer in offers:
        row = _merged(last, offer, today)
        if not _differences(last, row):
            continue
        found = True
        line = f"{name} from {row['from']}: {_told(last, row)}"
        problem = _problem(offer) or _order(last, row)
        problem = problem or (None if accepted else _absurd(last, row))
        if problem:
            report.refused.append(f"{line}: {problem}")
            return
        report.changed.append(line)
        report.rows.append(Row(name, row))
        last = row
    report.same += not found


def _new(report: Report, name: str, prices: Prices, today: date) -> None:
    provider, _, own = name.partition("/")
    listed = prices.find(provider, own)
    offer = listed.at(today) if listed else None
    if listed is None or offer is None:
        report.refused.append(f"{name}: not in the source")
        return
    problem = _problem(offer)
    if problem is None and listed.context_tokens is None:
        problem = "the source does not say how much it takes (context_tokens): add it by hand"
    if problem:
        report.refused.append(f"{name}: {problem}")
        return
    row = _merged({}, offer, today)
    embedding = "output" not in row
    model = {"provider": provider, "id": own, "context_tokens": listed.context_tokens}
    # What the source does not say is bounded by what it does.
    model |= {"kind": "embedding"} if embedding else {"max_output_tokens": listed.context_tokens}
    report.changed.append(f"{name} from {row['from']}: new, {_told({}, row)}")
    report.rows.append(Row(name, row, model))


def _merged(last: Mapping[str, Any], offer: Offer, today: date) -> dict[str, Any]:
    """The row after `last`: what the source says, and what it does not say as it was."""
    begins = offer.since if offer.since and (not last or offer.since > last["from"]) else today
    row = {**last, "from": begins, **{name: _text(rate) for name, rate in offer.rates.items()}}
    if offer.long_above is not None:
        long = {name: _text(rate) for name, rate in offer.long_rates.items()}
        kept = last.get("long_context", {})
        row["long_context"] = {**kept, "above": offer.long_above, **long}
    return row


def _differences(last: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    """The fields that cost something else, however the amount is written."""
    return [
        name
        for name in (*FIELDS, "long_context")
        if name in row and _amounts(last.get(name)) != _amounts(row[name])
    ]


def _amounts(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _amounts(part) for name, part in value.items()}
    return value if value is None else Decimal(value)


def _told(last: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    parts = []
    for name in _differences(last, row):
        was, now = last.get(name), row[name]
        if isinstance(now, Mapping) or was is None:
            parts.append(
                f"{name} {_short(now)}" if was is None else f"{name} {_short(now)} (changed)"
            )
        else:
            percent = "" if not Decimal(was) else f" ({Decimal(now) / Decimal(was) - 1:+.0%})"
            parts.append(f"{name} {was} → {now}{percent}")
    return ", ".join(parts)


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"above {value['above']:,}"
    return str(value)


def _problem(offer: Offer) -> str | None:
    """What makes an offer useless, whoever accepts it."""
    for name, rate in [*offer.rates.items(), *offer.long_rates.items()]:
        if not rate.is_finite() or rate < 0 or rate > _DEAREST:
            return f"{name} {rate} is no price"
        if rate % _FINEST:
            return f"{name} {rate} is finer than a nano-dollar"
    return None if "input" in offer.rates else "no price of input"


def _order(last: Mapping[str, Any], row: Mapping[str, Any]) -> str | None:
    if row["from"] <= last["from"]:
        return f"the file has a row from {last['from']} already, and rows are never changed"
    return None


def _absurd(last: Mapping[str, Any], row: Mapping[str, Any]) -> str | None:
    """A change that is more often a slip of the pen than a price."""
    for name in _differences(last, row):
        was, now = last.get(name), row[name]
        if isinstance(now, Mapping) or was is None:
            continue
        before, after = Decimal(was), Decimal(now)
        if after > before * _MOST_TIMES or after * _MOST_TIMES < before:
            return f"{name} is not likely; look it up, then --accept it"
    return None


def _text(amount: Decimal) -> str:
    return f"{amount.normalize():f}"
