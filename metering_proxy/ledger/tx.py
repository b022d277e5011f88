"""What the ledger's algorithm needs of a transaction that a store holds open. SQL that both databases speak."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import Table

Values = Mapping[str, Any]


class Tx(Protocol):
    """What the algorithm needs of a transaction. `now_at` is the database's clock, `lease_ms` a lease's length.

    `lock` ends a query whose rows nobody else may change until the transaction is over; it is empty where a
    transaction that writes is alone anyway.
    """

    now_at: int
    lease_ms: int
    worker: str
    lock: str

    def rows(self, sql: str, values: Values) -> Sequence[Sequence[Any]]:
        """The rows of a query (or of RETURNING)."""
        ...

    def run(self, sql: str, values: Values) -> int:
        """Runs a statement; the number of rows that it changed."""
        ...

    def many(self, sql: str, values: Sequence[Values]) -> None:
        """Runs a statement once for each of `values`, in one go."""
        ...


def insert_into(table: Table) -> str:
    """The statement that inserts a whole row of `table`, its values named as its columns are."""
    names = [column.name for column in table.columns]
    values = ", ".join(f":{name}" for name in names)
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({values})"  # noqa: S608
