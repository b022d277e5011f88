"""From a hold to its ending: each request is settled, released or charged by estimate, exactly once, whoever comes
first. On the way there its lease is renewed, and an attempt that failed is entered before the next one."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from infra.kit import money
from metering_proxy.ledger import corrections, entries, moves
from metering_proxy.ledger.holds import columns
from metering_proxy.ledger.ops import Renew, Reroute, Settle, Sweep, Swept
from metering_proxy.ledger.unit_of_work import UnitOfWork
from metering_proxy.pricing import Usage

# Output that a process may have forwarded after its last renewal: 20 s at 100 tokens a second.
RENEWAL_TOKENS = 2_000


def renew(work: UnitOfWork, op: Renew) -> bool:
    """Prolongs leases and writes down what was forwarded."""
    for request_id, seen in op.seen:
        work.renew(request_id, seen)
    return True


def release(work: UnitOfWork, request_id: str) -> bool:
    """Gives a hold back uncharged; False where the request had ended before."""
    ended = work.end(request_id, "released")
    if ended is None:
        return False
    moves.move(work, ended)
    return True


def settle(work: UnitOfWork, op: Settle) -> bool:
    """Charges an ended request, once; False where it had been charged before."""
    ended = work.end(op.request_id, "settled")
    if ended is None:
        return corrections.late(work, op)
    _charge(work, ended, op)
    return True


def reroute(work: UnitOfWork, op: Reroute) -> bool:
    """See `Reroute`."""
    row = work.rerouted(op.request_id)
    if row is None:
        return False
    entries.enter(work, row, op.failed, kind="attempt")
    row |= {"attempt": row["attempt"] + 1, **columns(op.target)}
    return True


def _charge(work: UnitOfWork, ended: Mapping[str, Any], op: Settle) -> None:
    paid = moves.move(
        work, ended, charge=op.charge_nanos, tokens=op.usage.total, requests=op.requests
    )
    entries.enter(work, ended, op, paid=paid)


# A lease that ends later than one taken now was taken before the clock was set back: nobody may have it longer.
_LAPSED = (
    "SELECT request_id, lease_until_at, output_seen FROM reservation WHERE state = 'dispatched'"
    " AND (lease_until_at < :lapsed_at OR lease_until_at > :latest_at) ORDER BY request_id LIMIT :most"
)


def sweep(work: UnitOfWork, op: Sweep) -> Swept:
    """Ends requests whose lease has run out: they are charged by estimate, but for those that are known to live.
    Leases that a step back of the clock has made longer than any is are cut to their length from now on."""
    tx = work.tx
    latest_at = tx.now_at + tx.lease_ms
    lapsed_at = tx.now_at if op.expected_at is None else min(tx.now_at, op.expected_at)
    values = {"lapsed_at": lapsed_at, "latest_at": latest_at, "most": op.at_most}
    found = tx.rows(_LAPSED + tx.lock, values)
    cut = [(request_id, seen) for request_id, until_at, seen in found if until_at > latest_at]
    lapsed, mine = [row[0] for row in found if row[1] < lapsed_at], dict(op.mine)
    kept = [(request_id, mine[request_id]) for request_id in lapsed if request_id in mine]
    for request_id, seen in (*cut, *kept):
        work.renew(request_id, seen)
    expired = [request_id for request_id in lapsed if request_id not in mine]
    work.load(expired, (), (), whole=True)
    charged = sum(_charge_estimate(work, request_id, lapsed_at) for request_id in expired)
    return Swept(charged, len(cut), len(kept), tx.now_at)


def _charge_estimate(work: UnitOfWork, request_id: str, lapsed_at: int) -> bool:
    """Input as estimated, output as last written down and one renewal's worth more; at most the hold.

    The lease is looked at again, since the rows are ours only now: somebody may have renewed it.
    """
    found = work.reservation(request_id)
    if found is None or found.row["lease_until_at"] >= lapsed_at:
        return False
    ended = work.end(request_id, "charged_estimate")
    if ended is None:
        return False
    output = min(ended["output_seen"] + RENEWAL_TOKENS, ended["output_limit"])
    exact = ended["input_cost_nanos"] + Fraction(output * ended["output_rate_nanos"], 1_000_000)
    cost_nanos = money.round_half_even(exact)
    charge_nanos = min(
        money.with_markup(cost_nanos, ended["markup_ppm"]), ended["charge_held_nanos"]
    )
    usage = Usage(input=ended["input_tokens"], output=output)
    settle = Settle(
        request_id,
        usage,
        cost_nanos,
        charge_nanos,
        outcome="lost",
        estimated=True,
        parts={"input": usage.input, "output": usage.output},
    )
    _charge(work, ended, settle)
    return True
