"""Whether a database stands where this code expects it. Bringing it there is migrate.py's matter, whose tool
weighs ten megabytes that no serving process needs."""

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from infra.kit.db import Database, answering

_RECORD = "alembic_version"


def directory(package: str) -> Path:
    """Where the migrations of the service `package` are kept."""
    found = importlib.import_module(package).__file__
    assert found is not None
    return Path(found).parent / "migrations"


async def at_head(db: Database, package: str) -> bool:
    """Whether the database has exactly the revisions that this code knows. Raises as `Database.read`."""

    def ask(connection: Connection) -> bool:
        if not inspect(connection).has_table(_RECORD):
            return False
        found = connection.execute(text(f"SELECT version_num FROM {_RECORD}"))  # noqa: S608 (a constant)
        return set(found.scalars()) == heads(directory(package))

    with answering():
        async with db.engine.connect() as connection:
            return await connection.run_sync(ask)


@cache
def heads(migrations: Path) -> frozenset[str]:
    """The revisions that no other one follows, as the files say it."""
    known: set[str] = set()
    followed: set[str | None] = set()
    for file in sorted((migrations / "versions").glob("*.py")):
        said = dict(_assigned(ast.parse(file.read_text())))
        known.add(said["revision"])
        followed.add(said["down_revision"])
    return frozenset(known - followed)


def _assigned(module: ast.Module) -> Iterator[tuple[str, Any]]:
    """The constants that a module gives a name to."""
    for line in module.body:
        if not isinstance(line, ast.Assign):
            continue
        for target in line.targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = line.value.elts if isinstance(line.value, ast.Tuple) else [line.value]
            for name, value in zip(names, values, strict=False):
                if isinstance(name, ast.Name) and isinstance(value, ast.Constant):
                    yield name.id, value.value
