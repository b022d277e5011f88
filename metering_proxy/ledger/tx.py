"""What the ledger's algorithm needs of a transaction that a store holds open. SQL that both databases speak."""

from collections.abc import Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol

from sqlalchemy import Table

from metering_proxy.ledger.posting import Posting

Values = Mapping[str, Any]
Key = tuple[str, str, int]
"""Of a window: account, kind, start."""
Mark = tuple[str, str, int, int]
"""Of a window: its key and a percentage of its limit."""


class Tx(Protocol):
    """What the algorithm needs of a transaction. `now_at` is the database's clock, `lease_ms` a lease's length.

    Rows that are read are nobody else's to change until the transaction is over, or `post` finds out that they
    were changed. `lock` ends a query of `rows` for which that has to be said; it is empty where a transaction
    that writes is alone anyway. `marked`: marks of which it is remembered that they are set.
    """

    now_at: int
    lease_ms: int
    worker: str
    lock: str
    marked: Container[Mark]

    def reservations(self, ids: Sequence[str], *, whole: bool) -> Iterable[dict[str, Any]]:
        """Rows of reservations; those that are not there are missing. `whole`: with their leases and the output
        seen, as the database has them."""
        ...

    def windows(
        self, keys: Sequence[Key], made: AbstractSet[Key]
    ) -> Iterable[tuple[Key, int, int]]:
        """Key, spent and held of windows; those of `made` are made where they are missing, others are left out."""
        ...

    def calls(self, accounts: Sequence[str]) -> Iterable[tuple[str, str, int]]:
        """Account, request and lease's end of each running call."""
        ...

    def rows(self, sql: str, values: Values) -> Sequence[Sequence[Any]]:
        """The rows of a query (or of RETURNING)."""
        ...

    def run(self, sql: str, values: Values) -> int:
        """Runs a statement; the number of rows that it changed."""
        ...

    def post(self, posting: Posting) -> None:
        """Writes what a unit of work has changed."""
        ...


def insert_into(table: Table) -> str:
    """The statement that inserts a whole row of `table`, its values named as its columns are."""
    names = [column.name for column in table.columns]
    values = ", ".join(f":{name}" for name in names)
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({values})"  # noqa: S608
