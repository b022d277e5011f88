"""What an ending does to the windows that a call held: held goes back, used is added, marks are set.

What grants held is spent only where the plan has no room for the charge.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from metering_proxy.ledger import credit
from metering_proxy.ledger.unit_of_work import UnitOfWork, Window
from metering_proxy.plans import NO_LIMIT

MARKS = (50, 80, 95)
"""Percent of a limit at which its use is told: metering facts 1.5."""


def move(
    work: UnitOfWork,
    ended: Mapping[str, Any],
    *,
    charge: int = 0,
    tokens: int = 0,
    requests: int = 0,
) -> int:
    """Turns what was held in each window into what was used; how much of the charge grants have paid."""
    account, free = ended["account"], NO_LIMIT
    moved: list[tuple[Window, str, int]] = []
    for kind, measure, start_at, amount, limit in orjson.loads(ended["windows"]):
        window = work.window((account, kind, start_at))
        if window is None:
            continue  # a minute long gone, told of late: nobody counts it any more
        moved.append((window, measure, limit))
        window.held -= amount
        if measure == "charge":
            free = min(free, limit - window.spent - window.held)
    lent = orjson.loads(ended["grants"])
    paid = credit.spend(work.tx, ended["request_id"], lent, max(0, charge - max(free, 0)))
    used = {"charge": charge - paid, "tokens": tokens, "requests": requests}
    for window, measure, limit in moved:
        if used[measure]:
            _use(work, window, used[measure], limit)
    return paid


def _use(work: UnitOfWork, window: Window, amount: int, limit: int) -> None:
    """Adds what was used, and sets the marks that it has reached by now."""
    window.spent += amount
    if amount < 0 or limit >= NO_LIMIT or window.key[1].endswith("_minute"):
        return
    for percent in passed(window.spent, limit):
        work.mark(window.key, percent)


def passed(spent: int, limit: int) -> list[int]:
    """The marks of a limit that its use has reached. Not those that it has just passed: a limit may have come down
    on what was used before."""
    return [percent for percent in MARKS if limit * percent <= spent * 100]
