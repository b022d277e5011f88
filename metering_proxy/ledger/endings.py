"""Endings: each request is settled, released or charged by estimate, exactly once, whoever comes first."""

from collections.abc import Mapping
from typing import Any

from infra.kit import money
from metering_proxy.ledger import corrections, entries, moves
from metering_proxy.ledger.ops import Settle, Sweep, Swept
from metering_proxy.ledger.tx import Tx
from metering_proxy.pricing import Usage

# Output that a process may have forwarded after its last renewal: 20 s at 100 tokens a second.
RENEWAL_TOKENS = 2_000


def release(tx: Tx, request_id: str) -> bool:
    """Gives a hold back uncharged; False where the request had ended before."""
    ended = _end(tx, request_id, "released")
    if ended is None:
        return False
    moves.move(tx, ended)
    return True


def settle(tx: Tx, op: Settle) -> bool:
    """Charges an ended request, once; False where it had been charged before."""
    ended = _end(tx, op.request_id, "settled")
    if ended is None:
        return corrections.late(tx, op)
    _charge(tx, ended, op)
    return True


_END = (
    "UPDATE reservation SET state = :state, ended_at = :now_at"  # noqa: S608 (names of columns)
    " WHERE request_id = :id AND state IN ('open', 'dispatched')"
    f" RETURNING {', '.join(entries.NAMES)}"
)


def _end(tx: Tx, request_id: str, state: str) -> dict[str, Any] | None:
    """Ends a running reservation, once; None where it had ended before."""
    rows = tx.rows(_END, {"id": request_id, "state": state, "now_at": tx.now_at})
    if not rows:
        return None
    ended = dict(zip(entries.NAMES, rows[0], strict=True))
    tx.run(
        "DELETE FROM slot WHERE account = :account AND request_id = :id",
        {"account": ended["account"], "id": request_id},
    )
    return ended


def _charge(tx: Tx, ended: Mapping[str, Any], op: Settle) -> None:
    paid = moves.move(tx, ended, charge=op.charge_nanos, tokens=op.usage.total, requests=1)
    entries.enter(tx, ended, op, paid=paid)


def sweep(tx: Tx, op: Sweep) -> Swept:
    """Ends requests whose lease has run out: open ones are released, dispatched ones are charged by estimate."""
    expired = tx.rows(
        "SELECT request_id, state FROM reservation"
        " WHERE state IN ('open', 'dispatched') AND lease_until_at < :now_at"
        " ORDER BY account, request_id LIMIT :most",
        {"now_at": tx.now_at, "most": op.at_most},
    )
    released = charged = 0
    for request_id, state in expired:
        if state == "open":
            released += release(tx, request_id)
        else:
            charged += _charge_estimate(tx, request_id)
    tx.run("DELETE FROM slot WHERE lease_until_at < :now_at", {"now_at": tx.now_at})
    return Swept(released, charged)


def _charge_estimate(tx: Tx, request_id: str) -> bool:
    """Input as estimated, output as last written down and one renewal's worth more; at most the hold."""
    ended = _end(tx, request_id, "charged_estimate")
    if ended is None:
        return False
    output = min(ended["output_seen"] + RENEWAL_TOKENS, ended["output_limit"])
    exact = ended["input_cost_nanos"] * 1_000_000 + output * ended["output_rate_nanos"]
    cost_nanos = exact // 1_000_000
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
    _charge(tx, ended, settle)
    return True
