"""The proof that the ledger is whole: derived sums against entries, and holds against running calls."""

import json
from collections import Counter
from dataclasses import dataclass

from infra.kit.db import Database, sql


@dataclass(frozen=True, slots=True)
class Verdict:
    """`drift_nanos`: by how much windows of charge differ from their entries, all differences added up.
    `held_nanos`: the same for what windows hold and what running calls hold. Both 0 when all is well."""

    drift_nanos: int
    held_nanos: int
    windows: int
    endings_twice: int

    @property
    def whole(self) -> bool:
        """Whether everything agrees."""
        return not (self.drift_nanos or self.held_nanos or self.endings_twice)


_SPENT = sql(
    "SELECT w.account, w.start_at, w.spent, COALESCE(e.charge, 0) AS charge"
    " FROM (SELECT account, start_at, spent FROM account_window WHERE kind = 'charge_month') w"
    " LEFT JOIN (SELECT account, month_start_at, SUM(charge_nanos) AS charge FROM entry"
    "            GROUP BY account, month_start_at) e"
    " ON e.account = w.account AND e.month_start_at = w.start_at"
)
_ORPHANS = sql(
    "SELECT COALESCE(SUM(ABS(e.charge_nanos)), 0) FROM entry e WHERE NOT EXISTS (SELECT 1 FROM account_window w"
    " WHERE w.account = e.account AND w.kind = 'charge_month' AND w.start_at = e.month_start_at)"
)
_HELD = sql("SELECT account, kind, start_at, held FROM account_window WHERE held <> 0")
_RUNNING = sql("SELECT account, windows FROM reservation WHERE state IN ('open', 'dispatched')")
_TWICE = sql(
    "SELECT count(*) FROM entry e JOIN reservation r ON r.request_id = e.request_id"
    " WHERE r.state NOT IN ('settled', 'charged_estimate')"
)


async def verify(db: Database) -> Verdict:
    """Compares everything that is derived with what it is derived from, in one consistent read."""
    async with db.read() as reading:
        spent = await reading.rows(_SPENT)
        orphans = int(await reading.value(_ORPHANS))
        held = await reading.rows(_HELD)
        running = await reading.rows(_RUNNING)
        twice = int(await reading.value(_TWICE))
    drift = orphans + sum(abs(int(row["spent"]) - int(row["charge"])) for row in spent)
    difference: Counter[tuple[str, str, int]] = Counter()
    for row in held:
        difference[row["account"], row["kind"], row["start_at"]] += row["held"]
    for row in running:
        for kind, _, start_at, amount in json.loads(row["windows"]):
            difference[row["account"], kind, start_at] -= amount
    return Verdict(drift, sum(map(abs, difference.values())), len(spent), twice)
