"""Grants while calls run: what they have left, what is held of them, what they pay in the end. Who makes them and
takes them back is grants.py's matter, a level above."""

from collections.abc import Sequence

from metering_proxy import models
from metering_proxy.ledger.tx import Tx, insert_into

Holds = Sequence[tuple[str, int]]
"""Grants, in the order in which they are spent, and an amount of each."""


class Taken(Exception):
    """Another process took what this one had seen as free."""


_LEFT = (
    "SELECT id, amount_nanos - spent_nanos - held_nanos FROM credit_grant"
    " WHERE account = :account AND revoked_at IS NULL"
    " AND (expires_at IS NULL OR expires_at > :now_at)"
    " AND amount_nanos > spent_nanos + held_nanos"
    " ORDER BY CASE WHEN expires_at IS NULL THEN 1 ELSE 0 END, expires_at, id"
)
_UNSPENT = (
    "SELECT amount_nanos - spent_nanos FROM credit_grant WHERE account = :account"
    " AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now_at)"
)
_HOLD = (
    "UPDATE credit_grant SET held_nanos = held_nanos + :amount"
    " WHERE id = :id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now_at)"
    " AND spent_nanos + held_nanos + :amount <= amount_nanos"
)
_SPEND = (
    "UPDATE credit_grant SET held_nanos = held_nanos - :held, spent_nanos = spent_nanos + :spent"
    " WHERE id = :id"
)
_INSERT_USE = insert_into(models.grant_use)


def left(tx: Tx, account: str) -> list[tuple[str, int]]:
    """What each live grant has left, soonest expiry first; those without one come last."""
    rows = tx.rows(_LEFT + tx.lock, {"account": account, "now_at": tx.now_at})
    return [(row[0], row[1]) for row in rows]


def unspent(tx: Tx, account: str) -> int:
    """What all live grants have together once no running call holds anything of them."""
    return sum(row[0] for row in tx.rows(_UNSPENT, {"account": account, "now_at": tx.now_at}))


def hold(tx: Tx, grants: Holds, amount: int) -> list[tuple[str, int]]:
    """Holds `amount` in `grants`, in their order. Raises Taken."""
    held = []
    for grant, free in grants:
        part = min(free, amount)
        if part <= 0:
            break
        if tx.run(_HOLD, {"id": grant, "amount": part, "now_at": tx.now_at}) != 1:
            raise Taken
        held.append((grant, part))
        amount -= part
    if amount > 0:
        raise Taken
    return held


def spend(tx: Tx, request_id: str, held: Holds, charge: int) -> int:
    """Lets holds go and takes `charge` of them, in their order; what was paid, which is at most what was held."""
    paid = 0
    for grant, amount in held:
        part = min(amount, charge - paid)
        tx.run(_SPEND, {"id": grant, "held": amount, "spent": part})
        if part:
            tx.run(
                _INSERT_USE,
                {
                    "request_id": request_id,
                    "grant_id": grant,
                    "amount_nanos": part,
                    "at": tx.now_at,
                },
            )
        paid += part
    return paid
