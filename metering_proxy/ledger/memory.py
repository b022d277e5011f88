"""What a process remembers of rows as it last committed them. Whether that is still true is each store's to know:
SQLite says whether anybody else has written, PostgreSQL compares it when a batch is posted.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from metering_proxy.ledger.tx import Key, Mark
from metering_proxy.ledger.unit_of_work import RUNNING, UnitOfWork

_K = TypeVar("_K")
_V = TypeVar("_V")
_MOST = 4096


def _keep(known: dict[_K, _V], new: Iterable[tuple[_K, _V]]) -> None:
    """Remembers what is new as the newest. What is forgotten for it is the oldest, and is asked for again."""
    for key, value in new:
        known.pop(key, None)
        known[key] = value
    while len(known) > _MOST:
        del known[next(iter(known))]


class Memory:
    """`reservations`: rows of the running ones that this process has made; nobody else changes them while they
    run. `windows`: spent and held. `calls`: of an account, each running call and its lease's end.
    `marked`: marks that are set, which nobody takes back."""

    def __init__(self) -> None:
        self.reservations: dict[str, dict[str, Any]] = {}
        self.windows: dict[Key, tuple[int, int]] = {}
        self.calls: dict[str, dict[str, int]] = {}
        self.marked: dict[Mark, None] = {}

    def follow(self, work: UnitOfWork) -> None:
        """Takes over what a unit of work has left, once its transaction is committed."""
        _keep(self.windows, ((w.key, (w.spent, w.held)) for w in work.windows()))
        _keep(self.calls, work.calls())
        _keep(self.marked, ((mark, None) for mark in work.marked()))
        for request_id, row in work.reservations():
            # Of an account whose calls are not remembered this is forgotten at once.
            calls = self.calls.get(row["account"], {})
            if row["state"] == RUNNING:
                self.reservations[request_id] = row
                calls[request_id] = row["lease_until_at"]
            else:
                self.reservations.pop(request_id, None)
                calls.pop(request_id, None)
        self._renewed(work.renewed(), work.tx.now_at + work.tx.lease_ms)

    def forget(self) -> None:
        """It is not known any more what is true."""
        self.reservations.clear()
        self.windows.clear()
        self.calls.clear()

    def _renewed(self, requests: Iterable[str], until_at: int) -> None:
        for request_id in requests:
            row = self.reservations.get(request_id)
            if row is None:
                self.calls.clear()  # a sweep has cut the lease of another process's call: whose is not known here
            else:
                row["lease_until_at"] = until_at
                self.calls.get(row["account"], {})[request_id] = until_at
