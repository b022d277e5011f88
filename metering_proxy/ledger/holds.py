"""Holds: from the check of every limit to the lease that is renewed while a call runs.

Windows are locked in the order of their keys before slots are counted, so that two processes
neither deadlock nor count past each other. A limit is held by the condition of the UPDATE itself,
which PostgreSQL checks again after it has waited for a row.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from metering_proxy import models
from metering_proxy.ledger import credit
from metering_proxy.ledger.credit import Taken
from metering_proxy.ledger.ops import Dispatch, Refused, Renew, Reserve, Reserved, Window
from metering_proxy.ledger.tx import Tx, insert_into
from metering_proxy.plans import NO_LIMIT

_ATTEMPTS = 4


def reserve(tx: Tx, op: Reserve) -> Reserved | Refused:
    """Holds the most that the request can use in every window, lowering its token limit to what they can bear.

    What the windows of charge cannot bear is held in the account's grants.
    """
    for _ in range(_ATTEMPTS):
        left = _read_windows(tx, op)
        plans = min((left[w.kind] for w in op.windows if w.measure == "charge"), default=NO_LIMIT)
        grants = [] if plans >= op.bound.charge_nanos(op.wanted) else credit.left(tx, op.account)
        limit, refused = _fit(op, left, sum(amount for _, amount in grants))
        if refused is not None:
            return refused
        charge = op.bound.charge_nanos(limit)
        of_plan = min(charge, max(plans, 0)) if grants else charge
        try:
            with tx.savepoint():
                amounts = _hold(tx, op, limit, of_plan)
                lent = credit.hold(tx, grants, charge - of_plan)
                _take_slot(tx, op)
                _insert_reservation(tx, op, limit, amounts, lent)
        except Taken:
            continue
        except _NoSlot as none:
            return none.refused
        return Reserved(limit, charge)
    window = op.windows[0]
    return Refused(window.kind, window.measure, window.ends_at, window.limit)


class _NoSlot(Exception):
    def __init__(self, refused: Refused) -> None:
        self.refused = refused


def _read_windows(tx: Tx, op: Reserve) -> dict[str, int]:
    """What each window has left. A window that nobody has used yet is made."""
    keys: dict[str, Any] = {"account": op.account}
    for n, window in enumerate(op.windows):
        keys[f"k{n}"], keys[f"s{n}"] = window.kind, window.start_at
    found = {
        (kind, start_at): spent + held
        for kind, start_at, spent, held in tx.rows(_read(len(op.windows)), keys)
    }
    left = {}
    for window in op.windows:
        used = found.get((window.kind, window.start_at))
        if used is None:
            tx.run(_OPEN, _key(op.account, window))
        left[window.kind] = window.limit - (used or 0)
    return left


@lru_cache
def _read(windows: int) -> str:
    """The query for so many windows by their keys: an account has a row for every minute that it was active."""
    keys = " OR ".join(f"(kind = :k{n} AND start_at = :s{n})" for n in range(windows))
    return (
        "SELECT kind, start_at, spent, held FROM account_window"  # noqa: S608 (numbered names)
        f" WHERE account = :account AND ({keys})"
    )


_OPEN = (
    "INSERT INTO account_window (account, kind, start_at, spent, held)"
    " VALUES (:account, :kind, :start_at, 0, 0) ON CONFLICT DO NOTHING"
)


def _key(account: str, window: Window) -> dict[str, Any]:
    return {"account": account, "kind": window.kind, "start_at": window.start_at}


def _fit(op: Reserve, left: Mapping[str, int], granted: int) -> tuple[int, Refused | None]:
    """The token limit that every window can bear, or the first window that cannot bear the least of it."""
    limit = op.wanted
    for window in op.windows:
        fits = _affordable(op, window, left[window.kind], granted, limit)
        if fits < min(op.floor, op.wanted):
            return 0, Refused(window.kind, window.measure, window.ends_at, window.limit)
        limit = fits
    return limit, None


def _affordable(op: Reserve, window: Window, left: int, granted: int, limit: int) -> int:
    if window.measure == "charge":
        return op.bound.affordable(max(left, 0) + granted if granted else left, limit)
    if window.measure == "tokens":
        return op.bound.affordable_tokens(left, limit)
    return limit if left >= 1 else -1


def _amount(op: Reserve, window: Window, limit: int, of_plan: int) -> int:
    if window.measure == "charge":
        return of_plan
    return op.bound.tokens(limit) if window.measure == "tokens" else 1


def _hold(tx: Tx, op: Reserve, limit: int, of_plan: int) -> list[list[str | int]]:
    amounts: list[list[str | int]] = []
    for window in sorted(op.windows, key=lambda w: (w.kind, w.start_at)):
        amount = _amount(op, window, limit, of_plan)
        values = {**_key(op.account, window), "amount": amount, "lim": window.limit}
        if tx.run(_HOLD, values) != 1:
            raise Taken
        amounts.append([window.kind, window.measure, window.start_at, amount, window.limit])
    return amounts


_HOLD = (
    "UPDATE account_window SET held = held + :amount"
    " WHERE account = :account AND kind = :kind AND start_at = :start_at"
    " AND spent + held + :amount <= :lim"
)


def _take_slot(tx: Tx, op: Reserve) -> None:
    """A place among the running calls. The account's windows are locked, so nobody else counts now."""
    if op.concurrent is None:
        return
    account = {"account": op.account, "now_at": tx.now_at}
    [[running]] = tx.rows(
        "SELECT count(*) FROM slot WHERE account = :account AND lease_until_at > :now_at", account
    )
    if running >= op.concurrent:
        raise _NoSlot(Refused("concurrent_calls", "concurrent", None, op.concurrent))
    tx.run(
        "INSERT INTO slot (account, request_id, lease_until_at) VALUES (:account, :id, :until_at)",
        {"account": op.account, "id": op.request_id, "until_at": tx.now_at + tx.lease_ms},
    )


_INSERT_RESERVATION = insert_into(models.reservation)


def _insert_reservation(
    tx: Tx, op: Reserve, limit: int, amounts: list[list[str | int]], lent: credit.Holds
) -> None:
    tx.run(
        _INSERT_RESERVATION,
        {
            "request_id": op.request_id,
            "account": op.account,
            "state": "open",
            "worker": tx.worker,
            "wire": op.wire,
            "provider": op.provider,
            "model": op.model,
            "price_id": op.price_id,
            "payer": op.payer,
            "windows": json.dumps(amounts),
            "month_start_at": op.month_start_at,
            "created_at": op.started_at,
            "dispatched_at": None,
            "ended_at": None,
            "lease_until_at": tx.now_at + tx.lease_ms,
            "markup_ppm": op.markup_ppm,
            "charge_held_nanos": op.bound.charge_nanos(limit),
            "input_tokens": op.input_tokens,
            "input_cost_nanos": op.input_cost_nanos,
            "output_rate_nanos": op.output_rate_nanos,
            "output_limit": limit * op.bound.choices + op.bound.extra_output,
            "output_seen": 0,
            "plan": op.plan,
            "grants": json.dumps(lent),
        },
    )


def dispatch(tx: Tx, op: Dispatch) -> bool:
    """Marks an open request as sent; False where it is open no more."""
    return (
        tx.run(
            "UPDATE reservation SET state = 'dispatched', dispatched_at = :now_at"
            " WHERE request_id = :id AND state = 'open'",
            {"id": op.request_id, "now_at": tx.now_at},
        )
        == 1
    )


def renew(tx: Tx, op: Renew) -> bool:
    """Prolongs leases and writes down what was forwarded."""
    until_at = tx.now_at + tx.lease_ms
    for request_id, seen in op.seen:
        values = {"id": request_id, "until_at": until_at}
        tx.run(
            "UPDATE reservation SET lease_until_at = :until_at, output_seen = :seen"
            " WHERE request_id = :id AND state IN ('open', 'dispatched')",
            {**values, "seen": seen},
        )
        tx.run("UPDATE slot SET lease_until_at = :until_at WHERE request_id = :id", values)
    return True
