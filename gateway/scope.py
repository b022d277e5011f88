"""The one place that says which rows are a person's own.

Every statement that runs for a signed-in person takes a `Scope` and adds `scope.of(table)`. A scope
is made from a session (`Identity.scope`) or, by jobs and admin acts, for one named tenant; there is
no scope of everybody. tests/gateway/test_scope.py holds this rule over the syntax tree.
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Table


@dataclass(frozen=True, slots=True)
class Scope:
    """One tenant and the account that owns it."""

    tenant: str
    account_id: str

    def of(self, table: Table) -> ColumnElement[bool]:
        """The condition that keeps a statement on `table` inside this tenant's wall."""
        if "tenant" in table.c:
            return table.c.tenant == self.tenant
        if "account_id" in table.c:
            return table.c.account_id == self.account_id
        raise LookupError(f"{table.name} has no owner to scope by")
