"""The queries of a unit of work: many rows by their keys with one statement, locked in the order of the keys.

Statements are made for 1, 2, 4, 8 … keys and padded, so that a database prepares only a few of them.
"""

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any

from metering_proxy import models
from metering_proxy.ledger.tx import Key, Tx

NAMES = tuple(str(column.name) for column in models.reservation.columns)


def reservations(tx: Tx, ids: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Whole rows of reservations; those that are not there are missing."""
    for row in _found(tx, _reservations, [(id,) for id in ids], tx.lock):
        yield dict(zip(NAMES, row, strict=True))


def running(tx: Tx, ids: Sequence[str]) -> set[str]:
    """Those of these reservations that have not ended."""
    return {row[0] for row in _found(tx, _running, [(id,) for id in ids], tx.lock)}


def windows(tx: Tx, keys: Sequence[Key], made: AbstractSet[Key]) -> Iterator[tuple[Key, int, int]]:
    """Key, spent and held of windows; those of `made` are made where they are not there, others are missing.

    All are made before one is locked: two processes would wait for each other if one did it the other way round.
    """
    _found(tx, _open, [key for key in keys if key in made])
    for account, kind, start_at, spent, held in _found(tx, _windows, keys, tx.lock):
        yield (account, kind, start_at), spent, held


def calls(tx: Tx, accounts: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """Account, request and lease's end of each running call."""
    for row in _found(tx, _calls, [(account,) for account in accounts]):
        yield row[0], row[1], row[2]


def _found(
    tx: Tx, query: Callable[[int], str], keys: Sequence[tuple[Any, ...]], lock: str = ""
) -> Sequence[Sequence[Any]]:
    if not keys:
        return ()
    size = 1 << (len(keys) - 1).bit_length()
    padded = [*keys, *[keys[-1]] * (size - len(keys))]
    values = {f"k{n}_{m}": part for n, key in enumerate(padded) for m, part in enumerate(key)}
    return tx.rows(query(size) + lock, values)


@lru_cache
def _reservations(size: int) -> str:
    return (
        f"SELECT {', '.join(NAMES)} FROM reservation"  # noqa: S608 (names of columns and values)
        f" WHERE request_id IN ({_names(size)}) ORDER BY request_id"
    )


@lru_cache
def _running(size: int) -> str:
    return (
        "SELECT request_id FROM reservation WHERE state = 'dispatched'"  # noqa: S608 (numbered names)
        f" AND request_id IN ({_names(size)}) ORDER BY request_id"
    )


@lru_cache
def _open(size: int) -> str:
    return (
        "INSERT INTO account_window (account, kind, start_at, spent, held)"  # noqa: S608 (numbered names)
        f" SELECT column1, column2, column3, 0, 0 FROM (VALUES {_keys(size)}) AS made"
        " WHERE true ON CONFLICT DO NOTHING"
    )


@lru_cache
def _windows(size: int) -> str:
    return (
        "SELECT account, kind, start_at, spent, held FROM account_window"  # noqa: S608 (numbered names)
        f" WHERE (account, kind, start_at) IN (VALUES {_keys(size)}) ORDER BY account, kind, start_at"
    )


@lru_cache
def _calls(size: int) -> str:
    return (
        "SELECT account, request_id, lease_until_at FROM reservation"  # noqa: S608 (numbered names)
        f" WHERE account IN ({_names(size)}) AND state = 'dispatched'"
    )


def _names(size: int) -> str:
    return ", ".join(f":k{n}_0" for n in range(size))


def _keys(size: int) -> str:
    return ", ".join(f"(:k{n}_0, :k{n}_1, CAST(:k{n}_2 AS BIGINT))" for n in range(size))
