"""One place says which rows are a person's own, and every statement on such rows asks it."""

import ast
from pathlib import Path

import pytest

import gateway
from gateway.models import admin_link, pending_message, session, tenant_change
from gateway.scope import Scope

# Functions that look across tenants on purpose, each for a job or by a secret that is the proof itself.
ACROSS = {
    "tenants_waiting",
    "forget_old",
    "forget_expired",
    "still_alive",
    "find",
    "touch",
    "start",
}


def test_scope_names_the_owner_of_a_row() -> None:
    scope = Scope("t" * 16, "a" * 26)
    assert str(scope.of(pending_message)) == "pending_message.tenant = :tenant_1"
    assert str(scope.of(session)) == "session.account_id = :account_id_1"
    assert str(scope.of(tenant_change)) == "tenant_change.tenant = :tenant_1"
    with pytest.raises(LookupError):
        scope.of(admin_link)


def _functions(path: Path) -> list[ast.AsyncFunctionDef]:
    tree = ast.parse(path.read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef)]


@pytest.mark.parametrize("where", ["pending/store.py", "accounts/sessions.py"])
def test_every_statement_on_a_persons_rows_is_scoped(where: str) -> None:
    """Each select, update and delete stands in a function that asks `scope.of` as often as it states."""
    path = Path(gateway.__file__).parent / where
    looked = 0
    for function in _functions(path):
        if function.name in ACROSS:
            continue
        text = ast.unparse(function)
        statements = sum(text.count(f"{verb}(table)") for verb in ("select", "update", "delete"))
        statements += sum(text.count(f"{verb}(session") for verb in ("select", "update", "delete"))
        assert text.count("scope.of(") >= min(statements, 1), f"{where}: {function.name}"
        looked += statements
    assert looked >= 3


def test_no_other_module_touches_a_persons_rows() -> None:
    root = Path(gateway.__file__).parent
    homes = {root / "pending/store.py", root / "accounts/sessions.py", root / "models.py"}
    strangers = [
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if path not in homes and "migrations" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        and node.module == "gateway.models"
        and {"pending_message", "session"} & {alias.name for alias in node.names}
    ]
    assert strangers == []
