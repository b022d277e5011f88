"""Figures of several rounds: medians, ratios, a table for people and one JSON object for machines."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson


class Rounds:
    """What each target reached, round by round, under a name for each measure."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], list[float]] = defaultdict(list)

    def add(self, target: str, measure: str, value: float) -> None:
        """One round's figure."""
        self._found[target, measure].append(value)

    def median(self, target: str, measure: str) -> float | None:
        """The median over the rounds; None where it was not measured."""
        values = self._found.get((target, measure))
        return statistics.median(values) if values else None

    def ratio(self, measure: str, target: str, over: str) -> float | None:
        """The median of the rounds' ratios: what was slow for both in one round counts for neither."""
        ours, theirs = self._found.get((target, measure)), self._found.get((over, measure))
        if not ours or not theirs:
            return None
        pairs = [a / b for a, b in zip(ours, theirs, strict=True) if b]
        return statistics.median(pairs) if pairs else None

    def table(self, targets: Sequence[str], measures: Sequence[str]) -> str:
        """Medians, a line for each target."""
        width = max(map(len, targets)) + 2
        lines = ["".ljust(width) + "  ".join(m.rjust(max(len(m), 9)) for m in measures)]
        for target in targets:
            cells = [_cell(self.median(target, m)).rjust(max(len(m), 9)) for m in measures]
            lines.append(target.ljust(width) + "  ".join(cells))
        return "\n".join(lines)

    def medians(self, targets: Iterable[str]) -> dict[str, dict[str, float]]:
        """All medians, for the JSON object."""
        wanted = set(targets)
        found: dict[str, dict[str, float]] = {name: {} for name in wanted}
        for target, measure in self._found:
            if target in wanted:
                found[target][measure] = round(self.median(target, measure) or 0.0, 4)
        return found


@dataclass(frozen=True, slots=True)
class Row:
    """A target of ours and what was reached; `at_most`: smaller is better."""

    row: str
    what: str
    wanted: float
    reached: float | None
    at_most: bool = False

    @property
    def met(self) -> bool | None:
        """Whether; None where it could not be measured."""
        if self.reached is None:
            return None
        return self.reached <= self.wanted if self.at_most else self.reached >= self.wanted

    def __str__(self) -> str:
        sign = "≤" if self.at_most else "≥"
        verdict = {True: "met", False: "MISSED", None: "not measured"}[self.met]
        return f"{self.row}: {self.what}: {_cell(self.reached)} (wanted {sign} {self.wanted:g}): {verdict}"


def last_line(bench: str, rows: Sequence[Row], **more: Any) -> str:
    """The JSON object that ends the output."""
    told = [{**asdict(row), "met": row.met} for row in rows]
    return orjson.dumps({"bench": bench, "rows": told, **more}).decode()


def _cell(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
