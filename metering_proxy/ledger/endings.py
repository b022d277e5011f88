"""Endings: each request is settled, released or charged by estimate, exactly once, whoever comes first."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from infra.kit import money
from metering_proxy import models
from metering_proxy.ledger.ops import Settle, Sweep, Swept
from metering_proxy.ledger.tx import Tx, insert_into
from metering_proxy.pricing import Usage

# Output that a process may have forwarded after its last renewal: 20 s at 100 tokens a second.
RENEWAL_TOKENS = 2_000


def release(tx: Tx, request_id: str) -> bool:
    """Gives a hold back uncharged; False where the request had ended before."""
    ended = _end(tx, request_id, "released")
    if ended is None:
        return False
    _move(tx, ended, charge=0, tokens=0, requests=0)
    return True


def settle(tx: Tx, op: Settle) -> bool:
    """Charges an ended request, once; False where it had been charged before."""
    ended = _end(tx, op.request_id, "settled")
    if ended is None:
        return _correct(tx, op)
    _enter(tx, ended, op, kind="usage")
    _move(tx, ended, charge=op.charge_nanos, tokens=op.usage.total, requests=1)
    return True


_NAMES = tuple(
    column.name
    for column in models.reservation.columns
    if column.name not in ("state", "worker", "dispatched_at", "ended_at", "lease_until_at")
)
_END = (
    "UPDATE reservation SET state = :state, ended_at = :now_at"  # noqa: S608 (names of columns)
    " WHERE request_id = :id AND state IN ('open', 'dispatched')"
    f" RETURNING {', '.join(_NAMES)}"
)
_ESTIMATED = (
    f"SELECT {', '.join(_NAMES)} FROM reservation"  # noqa: S608 (names of columns)
    " WHERE request_id = :id AND state = 'charged_estimate'"
)


def _end(tx: Tx, request_id: str, state: str) -> dict[str, Any] | None:
    """Ends a running reservation, once; None where it had ended before."""
    rows = tx.rows(_END, {"id": request_id, "state": state, "now_at": tx.now_at})
    if not rows:
        return None
    ended = dict(zip(_NAMES, rows[0], strict=True))
    tx.run(
        "DELETE FROM slot WHERE account = :account AND request_id = :id",
        {"account": ended["account"], "id": request_id},
    )
    return ended


def _move(tx: Tx, ended: Mapping[str, Any], *, charge: int, tokens: int, requests: int) -> None:
    """Turns what was held in each window into what was used."""
    used = {"charge": charge, "tokens": tokens, "requests": requests}
    for kind, measure, start_at, amount in json.loads(ended["windows"]):
        tx.run(
            "UPDATE account_window SET held = held - :amount, spent = spent + :used"
            " WHERE account = :account AND kind = :kind AND start_at = :start_at",
            {
                "account": ended["account"],
                "kind": kind,
                "start_at": start_at,
                "amount": amount,
                "used": used[measure],
            },
        )


_INSERT_ENTRY = insert_into(models.entry)


def _enter(tx: Tx, ended: Mapping[str, Any], op: Settle, *, kind: str) -> None:
    usage = op.usage
    tx.run(
        _INSERT_ENTRY,
        {
            "request_id": op.request_id,
            "attempt": 1,
            "kind": kind,
            "account": ended["account"],
            "at": tx.now_at,
            "started_at": ended["created_at"],
            "month_start_at": ended["month_start_at"],
            "wire": ended["wire"],
            "provider": ended["provider"],
            "model": ended["model"],
            "response_model": op.response_model,
            "price_id": ended["price_id"],
            "payer": ended["payer"],
            "outcome": op.outcome,
            "estimated": int(op.estimated),
            "overrun": int(op.charge_nanos > ended["charge_held_nanos"]),
            "input_tokens": usage.input + usage.audio_input,
            "cache_read_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write_5m + usage.cache_write_1h,
            "output_tokens": usage.output + usage.audio_output,
            "parts": json.dumps(op.parts),
            "markup_ppm": ended["markup_ppm"],
            "cost_nanos": op.cost_nanos,
            "charge_nanos": op.charge_nanos,
        },
    )


def _correct(tx: Tx, op: Settle) -> bool:
    """What a call really used, told after it had been charged by estimate: the difference, as a new entry."""
    found = tx.rows(_ESTIMATED, {"id": op.request_id})
    if not found or op.estimated or _corrected(tx, op.request_id):
        return False
    ended = dict(zip(_NAMES, found[0], strict=True))
    [estimate] = tx.rows(
        "SELECT input_tokens, output_tokens, cost_nanos, charge_nanos FROM entry"
        " WHERE request_id = :id AND kind = 'usage'",
        {"id": op.request_id},
    )
    usage = replace(
        op.usage,
        input=op.usage.input - estimate[0],
        output=op.usage.output - estimate[1],
    )
    cost, charge = op.cost_nanos - estimate[2], op.charge_nanos - estimate[3]
    late = replace(op, usage=usage, cost_nanos=cost, charge_nanos=charge)
    _enter(tx, ended, late, kind="correction_1")
    nothing_held = [[*window[:3], 0] for window in json.loads(ended["windows"])]
    moved = {**ended, "windows": json.dumps(nothing_held)}
    _move(tx, moved, charge=charge, tokens=usage.total, requests=0)
    return True


def _corrected(tx: Tx, request_id: str) -> bool:
    return bool(
        tx.rows(
            "SELECT 1 FROM entry WHERE request_id = :id AND kind = 'correction_1'",
            {"id": request_id},
        )
    )


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
    _enter(tx, ended, settle, kind="usage")
    _move(tx, ended, charge=charge_nanos, tokens=usage.total, requests=1)
    return True
