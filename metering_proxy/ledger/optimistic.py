"""Optimistic batches: done by what the process remembers, without asking the database first. What they stood on
is compared when they are posted. A batch that needs to know more is done again in a transaction that asks.
"""

from collections.abc import Container, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NoReturn

from metering_proxy.ledger.memory import Memory
from metering_proxy.ledger.posting import Posting
from metering_proxy.ledger.tx import Key, Mark, Values


class Unknown(Exception):
    """What is asked is not remembered."""


class OptimisticTx:
    """A `Tx` that has no transaction. Windows and calls that nobody remembers are taken for new ones: in each
    new minute they are. `posting` is what came of it."""

    lock = ""

    def __init__(self, memory: Memory, worker: str, lease_ms: int, now_at: int) -> None:
        self._memory = memory
        self.worker, self.lease_ms, self.now_at = worker, lease_ms, now_at
        self.marked: Container[Mark] = memory.marked
        self.posting: Posting | None = None

    def reservations(self, ids: Sequence[str], *, whole: bool) -> Iterator[dict[str, Any]]:
        """See `Tx.reservations`. Raises Unknown."""
        known = self._memory.reservations
        for id in ids:
            if whole or id not in known:
                raise Unknown
            yield dict(known[id])

    def windows(
        self, keys: Sequence[Key], made: AbstractSet[Key]
    ) -> Iterator[tuple[Key, int, int]]:
        """See `Tx.windows`. Raises Unknown."""
        known = self._memory.windows
        for key in keys:
            if key not in known and key not in made:
                raise Unknown
            spent, held = known.get(key, (0, 0))
            yield key, spent, held

    def calls(self, accounts: Sequence[str]) -> Iterator[tuple[str, str, int]]:
        """See `Tx.calls`."""
        for account in accounts:
            for request_id, until_at in self._memory.calls.get(account, {}).items():
                yield account, request_id, until_at

    def rows(self, sql: str, values: Values) -> NoReturn:
        """Raises Unknown."""
        raise Unknown

    def run(self, sql: str, values: Values) -> NoReturn:
        """Raises Unknown."""
        raise Unknown

    def post(self, posting: Posting) -> None:
        """Keeps it for the store. Nothing can be asked after it, so there is one."""
        self.posting = posting
