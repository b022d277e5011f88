"""Where the ledger's batches are committed: what a store promises, and which one a database has.

A batch is one transaction: it happens as a whole, or `apply` raises and nothing of it has happened.
"""

from collections.abc import Sequence
from typing import Protocol

from metering_proxy.ledger.ops import Answer, Op


class Store(Protocol):
    """Commits batches."""

    async def apply(self, ops: Sequence[Op]) -> list[Answer]:
        """One transaction; an answer for each operation, in order. Raises, and has done nothing then: `Away`
        where the database could not, anything else where the operations were at fault."""
        ...

    async def close(self) -> None:
        """Lets go of its connection."""
        ...


class Away(Exception):
    """The database does not take a batch at this moment."""
