"""The proof that the ledger is whole: derived sums against entries, and holds against running calls."""

import json
from collections import Counter
from dataclasses import dataclass

from infra.kit.db import Database, sql


@dataclass(frozen=True, slots=True)
class Verdict:
    """`drift_nanos`: by how much windows of charge and grants differ from the entries of what was spent of
    them, all differences added up. `held_nanos`: the same for what they hold and what running calls hold.
    `endings_twice`: entries of calls that did not end as charged. All are 0 when all is well.
    """

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
    " LEFT JOIN (SELECT account, month_start_at, SUM(charge_nanos - grant_nanos) AS charge FROM entry"
    "            GROUP BY account, month_start_at) e"
    " ON e.account = w.account AND e.month_start_at = w.start_at"
)
_ORPHANS = sql(
    "SELECT COALESCE(SUM(ABS(e.charge_nanos - e.grant_nanos)), 0) FROM entry e"
    " WHERE NOT EXISTS (SELECT 1 FROM account_window w"
    " WHERE w.account = e.account AND w.kind = 'charge_month' AND w.start_at = e.month_start_at)"
)
_HELD = sql("SELECT account, kind, start_at, held FROM account_window WHERE held <> 0")
_GRANTS = sql(
    "SELECT g.id, g.spent_nanos, g.held_nanos, COALESCE(u.used, 0) AS used FROM credit_grant g"
    " LEFT JOIN (SELECT grant_id, SUM(amount_nanos) AS used FROM grant_use GROUP BY grant_id) u"
    " ON u.grant_id = g.id"
)
_PAID = sql(
    "SELECT COALESCE(SUM(ABS(COALESCE(e.paid, 0) - COALESCE(u.used, 0))), 0) FROM"
    " (SELECT request_id, SUM(amount_nanos) AS used FROM grant_use GROUP BY request_id) u"
    " LEFT JOIN (SELECT request_id, SUM(grant_nanos) AS paid FROM entry WHERE grant_nanos <> 0"
    "            GROUP BY request_id) e ON e.request_id = u.request_id"
)
_RUNNING = sql("SELECT account, windows, grants FROM reservation WHERE state = 'dispatched'")
_TWICE = sql(
    "SELECT count(*) FROM entry e JOIN reservation r ON r.request_id = e.request_id"
    " WHERE e.kind <> 'attempt' AND r.state NOT IN ('settled', 'charged_estimate')"
)


async def verify(db: Database) -> Verdict:
    """Compares everything that is derived with what it is derived from, in one consistent read."""
    async with db.read() as reading:
        spent = await reading.rows(_SPENT)
        orphans = int(await reading.value(_ORPHANS))
        held = await reading.rows(_HELD)
        running = await reading.rows(_RUNNING)
        twice = int(await reading.value(_TWICE))
        grants = await reading.rows(_GRANTS)
        paid = int(await reading.value(_PAID))
    drift = orphans + paid
    drift += sum(abs(int(row["spent"]) - int(row["charge"])) for row in spent)
    drift += sum(abs(int(row["spent_nanos"]) - int(row["used"])) for row in grants)
    difference: Counter[tuple[str, str, int]] = Counter()
    for row in grants:
        difference["", row["id"], 0] += row["held_nanos"]
    for row in held:
        difference[row["account"], row["kind"], row["start_at"]] += row["held"]
    for row in running:
        for kind, _, start_at, amount, *_ in json.loads(row["windows"]):
            difference[row["account"], kind, start_at] -= amount
        for grant, amount in json.loads(row["grants"]):
            difference["", grant, 0] -= amount
    return Verdict(drift, sum(map(abs, difference.values())), len(spent), twice)
