"""Corrections: differences from what a request's entries say, as new entries numbered from correction_1 on.

A correction is a matter of the plan's month in which the call was made; grants pay for none and get none back.
"""

from dataclasses import replace
from typing import Any

import orjson

from metering_proxy import models
from metering_proxy.ledger import entries, moves
from metering_proxy.ledger.ops import Correct, Settle
from metering_proxy.ledger.tx import Tx
from metering_proxy.ledger.unit_of_work import UnitOfWork

REPRICED = "repriced"

_SUMS = (
    "SELECT count(*), COALESCE(SUM(input_tokens), 0), COALESCE(SUM(output_tokens), 0),"
    " COALESCE(SUM(cost_nanos), 0), COALESCE(SUM(charge_nanos), 0) FROM entry"
    " WHERE request_id = :id AND attempt = :attempt"
)


def late(work: UnitOfWork, op: Settle) -> bool:
    """What a call really used, told after it had been charged by estimate; once."""
    found = work.reservation(op.request_id)
    if found is None or found.row["state"] != "charged_estimate" or op.estimated:
        return False
    ended, tx = found.row, work.written()
    if _told_late(tx, op.request_id):
        return False
    count, input_tokens, output_tokens, cost, charge = _sums(tx, op.request_id, ended["attempt"])
    usage = replace(
        op.usage,
        input=op.usage.input - input_tokens,
        output=op.usage.output - output_tokens,
    )
    difference = replace(
        op, usage=usage, cost_nanos=op.cost_nanos - cost, charge_nanos=op.charge_nanos - charge
    )
    entries.enter(work, ended, difference, kind=f"correction_{count}")
    nothing_held = [[*window[:3], 0, *window[4:]] for window in orjson.loads(ended["windows"])]
    moved = {**ended, "windows": orjson.dumps(nothing_held), "grants": "[]"}
    moves.move(work, moved, charge=difference.charge_nanos, tokens=usage.total)
    return True


def correct(work: UnitOfWork, op: Correct) -> bool:
    """See `Correct`. The entries that stand are not touched."""
    tx = work.written()
    count, _, _, cost, charge = _sums(tx, op.request_id, op.attempt)
    if not count or (cost, charge) != (op.was_cost_nanos, op.was_charge_nanos):
        return False
    first = _first(tx, op)
    values = {
        **first,
        "kind": f"correction_{count}",
        "at": tx.now_at,
        "outcome": REPRICED,
        "price_id": op.price_id,
        "estimated": 0,
        "overrun": 0,
        "input_tokens": 0,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "output_tokens": 0,
        "parts": "{}",
        "cost_nanos": op.cost_nanos - cost,
        "charge_nanos": op.charge_nanos - charge,
        "grant_nanos": 0,
    }
    work.enter(values)
    key = (first["account"], "charge_month", first["month_start_at"])
    work.load((), [key], ())
    month = work.window(key)
    assert month is not None
    month.spent += op.charge_nanos - charge
    return True


def _sums(tx: Tx, request_id: str, attempt: int) -> list[int]:
    [row] = tx.rows(_SUMS, {"id": request_id, "attempt": attempt})
    return [int(value) for value in row]  # PostgreSQL sums BIGINT as NUMERIC


def _told_late(tx: Tx, request_id: str) -> bool:
    return bool(
        tx.rows(
            "SELECT 1 FROM entry WHERE request_id = :id AND kind <> 'usage' AND outcome <> :repriced",
            {"id": request_id, "repriced": REPRICED},
        )
    )


_FIRST_NAMES = tuple(str(column.name) for column in models.entry.columns)
_FIRST = (
    f"SELECT {', '.join(_FIRST_NAMES)} FROM entry"  # noqa: S608 (names of columns)
    " WHERE request_id = :id AND attempt = :attempt AND kind = 'usage'"
)


def _first(tx: Tx, op: Correct) -> dict[str, Any]:
    [row] = tx.rows(_FIRST, {"id": op.request_id, "attempt": op.attempt})
    return dict(zip(_FIRST_NAMES, row, strict=True))
