"""What a unit of work writes, and what it stands on: plain rows for a store, which writes all of them or none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]


@dataclass(slots=True)
class Posting:
    """`running`, `calls` and the `was_…` of windows are what the unit of work saw, and hold under the locks of its
    transaction. A store that saw them without a lock compares them before it writes.

    Wide rows have names, narrow ones an order, in which they are sorted.
    """

    now_at: int
    until_at: int
    """Until when leases last that begin or are renewed now."""
    windows: list[tuple[str, str, int, int, int, int, int]] = field(default_factory=list)
    """Account, kind, start, was spent, was held, spent, held; of every window that was looked at."""
    calls: list[tuple[str, int]] = field(default_factory=list)
    """Account, and how many of its calls ran."""
    running: list[str] = field(default_factory=list)
    """Reservations that had not ended: those that end or go elsewhere now."""
    ended: list[tuple[str, str]] = field(default_factory=list)
    """Reservation and the state in which it ends."""
    renewed: list[tuple[str, int]] = field(default_factory=list)
    """Reservation and the output seen; without effect where it has ended."""
    made: list[Row] = field(default_factory=list)
    rerouted: list[Row] = field(default_factory=list)
    entries: list[Row] = field(default_factory=list)
    marks: list[Row] = field(default_factory=list)
    """Without effect where one was set before."""

    def moved(self) -> list[tuple[str, str, int, int, int, int, int]]:
        """The windows that have changed."""
        return [row for row in self.windows if row[3:5] != row[5:7]]
