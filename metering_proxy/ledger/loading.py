"""The queries of a sheet: many rows by their keys with one statement, locked in the order of the keys.

Statements are made for 1, 2, 4, 8 … keys and padded, so that a database prepares only a few of them.
"""

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any

import orjson

from metering_proxy import models
from metering_proxy.ledger.tx import Tx

Key = tuple[str, str, int]
NAMES = tuple(column.name for column in models.reservation.columns)
_OPEN = (
    "INSERT INTO account_window (account, kind, start_at, spent, held)"
    " VALUES (:account, :kind, :start_at, 0, 0) ON CONFLICT DO NOTHING"
)


def keys(reservation: dict[str, Any]) -> set[Key]:
    """The windows that a reservation holds."""
    return {(reservation["account"], w[0], w[2]) for w in orjson.loads(reservation["windows"])}


def reservations(tx: Tx, ids: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Whole rows of reservations; those that are not there are missing."""
    for row in _found(tx, _reservations, [(id,) for id in ids]):
        yield dict(zip(NAMES, row, strict=True))


def running(tx: Tx, ids: Sequence[str]) -> Iterator[str]:
    """Those of these reservations that have not ended."""
    for row in _found(tx, _running, [(id,) for id in ids]):
        yield row[0]


def windows(tx: Tx, keys: Sequence[Key], made: AbstractSet[Key]) -> Iterator[tuple[Key, int, int]]:
    """Key, spent and held of windows; those of `made` that nobody has used yet are made, others are missing."""
    found = {tuple(row[:3]): (row[3], row[4]) for row in _found(tx, _windows, keys)}
    new = [key for key in keys if key not in found and key in made]
    if new:
        tx.many(_OPEN, [{"account": a, "kind": k, "start_at": s} for a, k, s in new])
        # Another process may have made one of them, and used it.
        found |= {tuple(row[:3]): (row[3], row[4]) for row in _found(tx, _windows, new)}
    for key in keys:
        if key in found:
            yield (key, *found[key])


def slots(tx: Tx, accounts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Account and request of each running call."""
    for row in _found(tx, _slots, [(account,) for account in accounts], now_at=tx.now_at):
        yield row[0], row[1]


def _found(
    tx: Tx, query: Callable[[int], str], keys: Sequence[tuple[Any, ...]], **more: Any
) -> Sequence[Sequence[Any]]:
    if not keys:
        return ()
    size = 1 << (len(keys) - 1).bit_length()
    padded = [*keys, *[keys[-1]] * (size - len(keys))]
    values = {f"k{n}_{m}": part for n, key in enumerate(padded) for m, part in enumerate(key)}
    lock = "" if query is _slots else tx.lock
    return tx.rows(query(size) + lock, {**values, **more})


@lru_cache
def _reservations(size: int) -> str:
    ids = ", ".join(f":k{n}_0" for n in range(size))
    return (
        f"SELECT {', '.join(NAMES)} FROM reservation"  # noqa: S608 (names of columns and values)
        f" WHERE request_id IN ({ids}) ORDER BY request_id"
    )


@lru_cache
def _running(size: int) -> str:
    ids = ", ".join(f":k{n}_0" for n in range(size))
    return (
        "SELECT request_id FROM reservation WHERE state = 'dispatched'"  # noqa: S608 (numbered names)
        f" AND request_id IN ({ids}) ORDER BY request_id"
    )


@lru_cache
def _windows(size: int) -> str:
    each = ", ".join(f"(:k{n}_0, :k{n}_1, CAST(:k{n}_2 AS BIGINT))" for n in range(size))
    return (
        "SELECT account, kind, start_at, spent, held FROM account_window"  # noqa: S608 (numbered names)
        f" WHERE (account, kind, start_at) IN (VALUES {each}) ORDER BY account, kind, start_at"
    )


@lru_cache
def _slots(size: int) -> str:
    accounts = ", ".join(f":k{n}_0" for n in range(size))
    return (
        "SELECT account, request_id FROM slot"  # noqa: S608 (numbered names)
        f" WHERE account IN ({accounts}) AND lease_until_at > :now_at"
    )
