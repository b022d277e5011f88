"""The ledger's algorithm for one batch: load what its operations touch, do them in order, write what changed."""

from collections.abc import Sequence

from metering_proxy.ledger import corrections, endings, holds
from metering_proxy.ledger.ops import (
    Answer,
    Correct,
    Op,
    Release,
    Renew,
    Reroute,
    Reserve,
    Settle,
    Sweep,
)
from metering_proxy.ledger.sheet import Sheet
from metering_proxy.ledger.tx import Tx


def apply_all(tx: Tx, ops: Sequence[Op]) -> tuple[list[Answer], Sheet]:
    """Does `ops` and answers each. What one raises undoes all: the caller rolls back."""
    sheet = Sheet(tx)
    reserves = [op for op in ops if isinstance(op, Reserve)]
    sheet.load(
        (op.request_id for op in ops if isinstance(op, Settle | Release | Reroute)),
        (key for op in reserves for key in holds.keys(op)),
        (op.account for op in reserves if op.concurrent is not None),
    )
    answers = [_apply(sheet, op) for op in ops]
    sheet.write()
    return answers, sheet


def _apply(sheet: Sheet, op: Op) -> Answer:
    match op:
        case Reserve():
            return holds.reserve(sheet, op)
        case Settle():
            return endings.settle(sheet, op)
        case Renew():
            return endings.renew(sheet, op)
        case Release():
            return endings.release(sheet, op.request_id)
        case Reroute():
            return endings.reroute(sheet, op)
        case Correct():
            return corrections.correct(sheet, op)
        case Sweep():
            return endings.sweep(sheet, op)
