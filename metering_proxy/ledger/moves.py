"""What an ending does to the windows that a call held: held goes back, used is added, marks are set.

What grants held is spent only where the plan has no room for the charge.
"""

import json
from collections.abc import Mapping
from typing import Any

from metering_proxy import models
from metering_proxy.ledger import credit
from metering_proxy.ledger.tx import Tx, insert_into
from metering_proxy.plans import NO_LIMIT

MARKS = (50, 80, 95)
"""Percent of a limit at which its use is told: metering facts 1.5."""

_MOVE = (
    "UPDATE account_window SET held = held - :held, spent = spent + :used"
    " WHERE account = :account AND kind = :kind AND start_at = :start_at"
    " RETURNING spent, held"
)
_MARK = insert_into(models.mark) + " ON CONFLICT DO NOTHING"


def move(
    tx: Tx, ended: Mapping[str, Any], *, charge: int = 0, tokens: int = 0, requests: int = 0
) -> int:
    """Turns what was held in each window into what was used; how much of the charge grants have paid."""
    windows = [_Window(tx, ended["account"], *fields) for fields in json.loads(ended["windows"])]
    lent = json.loads(ended["grants"])
    paid = 0
    if lent:
        free = min((w.let_go() for w in windows if w.measure == "charge"), default=0)
        paid = credit.spend(tx, ended["request_id"], lent, max(0, charge - max(free, 0)))
    used = {"charge": charge - paid, "tokens": tokens, "requests": requests}
    for window in windows:
        window.use(used[window.measure])
    return paid


class _Window:
    """One window of an ended call."""

    def __init__(
        self,
        tx: Tx,
        account: str,
        kind: str,
        measure: str,
        start_at: int,
        held: int,
        limit: int = NO_LIMIT,
    ) -> None:
        self._tx, self._held, self._limit = tx, held, limit
        self._key = {"account": account, "kind": kind, "start_at": start_at}
        self.measure = measure

    def let_go(self) -> int:
        """Gives back what is held; how much of the limit is free then. The row stays locked."""
        spent, held = self._move(0)
        self._held = 0
        return self._limit - spent - held

    def use(self, amount: int) -> None:
        """Gives back what is still held, adds what was used, and sets the marks that this has passed."""
        spent, _ = self._move(amount)
        if amount <= 0 or self._limit >= NO_LIMIT or str(self._key["kind"]).endswith("_minute"):
            return
        for percent in MARKS:
            if (spent - amount) * 100 < self._limit * percent <= spent * 100:
                self._tx.run(
                    _MARK,
                    {**self._key, "percent": percent, "at": self._tx.now_at, "told_at": None},
                )

    def _move(self, used: int) -> tuple[int, int]:
        rows = self._tx.rows(_MOVE, {**self._key, "held": self._held, "used": used})
        if not rows:
            return used, 0  # a minute long gone, told of late: nobody counts it any more
        return rows[0][0], rows[0][1]
