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
from metering_proxy.ledger.tx import Tx
from metering_proxy.ledger.unit_of_work import UnitOfWork


def apply_all(tx: Tx, ops: Sequence[Op]) -> tuple[list[Answer], UnitOfWork]:
    """Does `ops` and answers each. What one raises undoes all: the caller rolls back."""
    work = UnitOfWork(tx)
    reserves = [op for op in ops if isinstance(op, Reserve)]
    work.load(
        (op.request_id for op in ops if isinstance(op, Settle | Release | Reroute)),
        (key for op in reserves for key in holds.keys(op)),
        (op.account for op in reserves if op.concurrent is not None),
    )
    answers = [_apply(work, op) for op in ops]
    work.write()
    return answers, work


def _apply(work: UnitOfWork, op: Op) -> Answer:
    match op:
        case Reserve():
            return holds.reserve(work, op)
        case Settle():
            return endings.settle(work, op)
        case Renew():
            return endings.renew(work, op)
        case Release():
            return endings.release(work, op.request_id)
        case Reroute():
            return endings.reroute(work, op)
        case Correct():
            return corrections.correct(work, op)
        case Sweep():
            return endings.sweep(work, op)
