"""What the ledger's algorithm needs of a transaction that a store holds open. SQL that both databases speak."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from sqlalchemy import Table


class Tx(Protocol):
    """What the algorithm needs of a transaction. `now_at` is the database's clock, `lease_ms` a lease's length."""

    now_at: int
    lease_ms: int
    worker: str

    def rows(self, sql: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        """The rows of a query (or of RETURNING)."""
        ...

    def run(self, sql: str, values: Mapping[str, Any]) -> int:
        """Runs a statement; the number of rows that it changed."""
        ...

    def savepoint(self) -> AbstractContextManager[None]:
        """What is written inside is undone alone if it raises."""
        ...


def insert_into(table: Table) -> str:
    """The statement that inserts a whole row of `table`, its values named as its columns are."""
    names = [column.name for column in table.columns]
    values = ", ".join(f":{name}" for name in names)
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({values})"  # noqa: S608
