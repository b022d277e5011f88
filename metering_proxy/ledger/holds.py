"""Holds: the check of every limit, and what is held in each of them.

An account's windows are loaded, and so locked, before its running calls are counted: two processes neither
deadlock nor count past each other. Nothing is changed before everything was found to fit.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from metering_proxy.ledger import credit
from metering_proxy.ledger.ops import Refused, Reserve, Reserved, Target, Window
from metering_proxy.ledger.tx import Key, Tx
from metering_proxy.ledger.unit_of_work import RUNNING, UnitOfWork
from metering_proxy.plans import NO_LIMIT


def reserve(work: UnitOfWork, op: Reserve) -> Reserved | Refused:
    """Holds the most that the request can use in every window, lowering its token limit to what they can bear.

    What the windows of charge cannot bear is held in the account's grants.
    """
    stand = [work.made_window(key) for key in keys(op)]
    # Nothing where more is used than the limit is by now: what costs nothing still fits.
    left = [
        max(0, w.limit - row.spent - row.held) for w, row in zip(op.windows, stand, strict=True)
    ]
    of_charge = [n for w, n in zip(op.windows, left, strict=True) if w.measure == "charge"]
    plans = min(of_charge, default=NO_LIMIT)
    worst = op.bound.charge_nanos(op.wanted)
    grants = [] if plans >= worst else credit.left(work.tx, op.account)
    limit, short = _fit(op, left, sum(amount for _, amount in grants))
    if short is not None:
        return _refused(work.tx, op, short)
    if op.concurrent is not None and work.running(op.account) >= op.concurrent:
        return Refused("concurrent_calls", "concurrent", None, op.concurrent)
    charge = worst if limit == op.wanted else op.bound.charge_nanos(limit)
    of_plan = min(charge, plans) if grants else charge
    lent = credit.hold(work.tx, grants, charge - of_plan) if charge > of_plan else []
    amounts = [_amount(op, window, limit, of_plan) for window in op.windows]
    for row, amount in zip(stand, amounts, strict=True):
        row.held += amount
    work.hold(_reservation(work.tx, op, limit, charge, amounts, lent))
    return Reserved(limit, charge)


def keys(op: Reserve) -> list[Key]:
    """The windows that the request falls in."""
    return [(op.account, window.kind, window.start_at) for window in op.windows]


def columns(target: Target) -> dict[str, str | int]:
    """A target as columns of a reservation."""
    return {
        "provider": target.provider,
        "model": target.model,
        "price_id": target.price_id,
        "input_tokens": target.input_tokens,
        "input_cost_nanos": target.input_cost_nanos,
        "output_rate_nanos": target.output_rate_nanos,
    }


def _fit(op: Reserve, left: Sequence[int], granted: int) -> tuple[int, Window | None]:
    """The token limit that every window can bear, or, of those that cannot bear the least of it, the one that ends
    last: who tries again before that is refused again."""
    limit = op.wanted
    short: Window | None = None
    for window, has in zip(op.windows, left, strict=True):
        fits = _affordable(op, window, has, granted, limit)
        if fits >= op.least:
            limit = fits
        elif short is None or window.ends_at > short.ends_at:
            short = window
    return limit, short


def _refused(tx: Tx, op: Reserve, short: Window) -> Refused:
    """The refusal for a window that is short of room. Who waits for its end must not wait in vain: where a window
    of which nothing is used, and all credit, could not bear the least of the request, it says so instead."""
    fits, tightest = _tightest(op, 0)
    if fits < op.least and tightest.measure == "charge":
        fits, tightest = _tightest(op, credit.unspent(tx, op.account))
    if fits >= op.least:
        return Refused(short.kind, short.measure, short.ends_at, short.limit)
    return Refused(tightest.kind, tightest.measure, None, tightest.limit, fits)


def _tightest(op: Reserve, granted: int) -> tuple[int, Window]:
    """The largest token limit for which every window has room as long as nothing of it is used, and the window
    that has the least."""
    of_each = [_affordable(op, window, window.limit, granted, op.wanted) for window in op.windows]
    fits = min(of_each)
    return fits, op.windows[of_each.index(fits)]


def _affordable(op: Reserve, window: Window, left: int, granted: int, limit: int) -> int:
    if window.measure == "charge":
        return op.bound.affordable(left + granted, limit)
    if window.measure == "tokens":
        return op.bound.affordable_tokens(left, limit)
    return limit if left >= 1 else -1


def _amount(op: Reserve, window: Window, limit: int, of_plan: int) -> int:
    if window.measure == "charge":
        return of_plan
    return op.bound.tokens(limit) if window.measure == "tokens" else 1


def _reservation(
    tx: Tx, op: Reserve, limit: int, charge: int, amounts: Sequence[int], lent: credit.Holds
) -> dict[str, Any]:
    held = [
        (window.kind, window.measure, window.start_at, amount, window.limit)
        for window, amount in zip(op.windows, amounts, strict=True)
    ]
    return {
        "request_id": op.request_id,
        "account": op.account,
        "state": RUNNING,
        "worker": tx.worker,
        "wire": op.wire,
        **columns(op.target),
        "payer": op.payer,
        "windows": orjson.dumps(held).decode(),
        "month_start_at": op.month_start_at,
        "created_at": op.started_at,
        "dispatched_at": tx.now_at,
        "ended_at": None,
        "lease_until_at": tx.now_at + tx.lease_ms,
        "markup_ppm": op.markup_ppm,
        "charge_held_nanos": charge,
        "output_limit": limit * op.bound.choices + op.bound.extra_output,
        "output_seen": 0,
        "plan": op.plan,
        "grants": orjson.dumps(lent).decode(),
        "attempt": 1,
    }
