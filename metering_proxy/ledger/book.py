"""The ledger's algorithm, one operation at a time. No I/O of its own: a store hands in its transaction."""

from metering_proxy.ledger import corrections, endings, holds
from metering_proxy.ledger.ops import (
    Answer,
    Correct,
    Dispatch,
    Op,
    Release,
    Renew,
    Reserve,
    Settle,
    Sweep,
)
from metering_proxy.ledger.tx import Tx


def apply(tx: Tx, op: Op) -> Answer:
    """Does `op` and answers it. Whoever calls holds a savepoint around it."""
    match op:
        case Reserve():
            return holds.reserve(tx, op)
        case Dispatch():
            return holds.dispatch(tx, op)
        case Renew():
            return holds.renew(tx, op)
        case Release():
            return endings.release(tx, op.request_id)
        case Settle():
            return endings.settle(tx, op)
        case Correct():
            return corrections.correct(tx, op)
        case Sweep():
            return endings.sweep(tx, op)
