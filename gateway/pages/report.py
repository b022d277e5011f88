"""Usage rows of the meter as tables and charts: sums, models, days. Nothing is asked for here."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Any

from metering_proxy.wire import Sums, UsageRow

_FIELDS = (
    "requests",
    "input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "charge_nanos",
    "cost_nanos",
)
_SERIES, OTHERS = 5, "other models"


def sums(rows: Iterable[Sums], *, with_cost: bool = False) -> dict[str, int]:
    """*Sum* of the templates: exact, over all of `rows`."""
    total = dict.fromkeys(_fields(with_cost), 0)
    for row in rows:
        for name in total:
            total[name] += getattr(row, name)
    return total


def by_model(rows: Iterable[UsageRow], *, with_cost: bool = False) -> list[dict[str, Any]]:
    """*Row* list of the templates, dearest first."""
    models: dict[str, list[UsageRow]] = defaultdict(list)
    for row in rows:
        models[row.model or "unknown"].append(row)
    made: list[dict[str, Any]] = [
        {"model": model, **sums(its, with_cost=with_cost)} for model, its in models.items()
    ]
    return sorted(made, key=lambda row: (-row["charge_nanos"], row["model"]))


def chart(rows: Sequence[UsageRow], first: date, last: date) -> dict[str, Any]:
    """*Chart* of the templates: every day from `first` to `last`, the dearest models by name."""
    dearest = [row["model"] for row in by_model(rows)]
    named = set(dearest[:_SERIES])
    series = dearest[:_SERIES] + ([OTHERS] if len(dearest) > _SERIES else [])
    values: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        model = row.model or "unknown"
        values[row.day or ""][model if model in named else OTHERS] += row.charge_nanos
    days = []
    for n in range((last - first).days + 1):
        when = first + timedelta(days=n)
        on_day = dict(values.get(when.isoformat(), {}))
        days.append(
            {
                "day": when.isoformat(),
                "label": f"{when.day} {when:%b}",
                "values": on_day,
                "total_nanos": sum(on_day.values()),
            }
        )
    return {"series": series, "days": days}


def _fields(with_cost: bool) -> tuple[str, ...]:
    return _FIELDS if with_cost else tuple(name for name in _FIELDS if name != "cost_nanos")
