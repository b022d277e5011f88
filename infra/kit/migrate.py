"""Migrations: alembic, one directory a service, run once by whoever comes first.

A service's `migrations/env.py` is two lines: it hands its metadata to `run_env`.
"""

import asyncio
import fcntl
import hashlib
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command, context
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, make_url, text

from infra.kit import schema
from infra.kit.db import Database, answering
from infra.kit.errors import AlcoveError

log = logging.getLogger(__name__)


def run_env(metadata: MetaData) -> None:
    """The whole of a service's env.py: runs the migrations on the connection that `upgrade` handed in."""
    connection: Connection = context.config.attributes["connection"]
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_as_batch=True,
        transaction_per_migration=False,
    )
    context.run_migrations()


def config(package: str) -> Config:
    """The alembic configuration of the service `package`."""
    result = Config()
    result.set_main_option("script_location", str(schema.directory(package)))
    result.set_main_option("path_separator", "os")
    return result


async def upgrade(db: Database, package: str) -> None:
    """Brings the database to the newest revision. Safe from several processes: one runs, others wait.

    All revisions run in one transaction (SQLite and PostgreSQL both have transactional DDL), so
    a broken or killed migration leaves the old schema whole. Raises `conflict` (reason `newer_schema`)
    for a database of a newer release, `unavailable` (reason `database`) for one that cannot be opened.
    """
    with _file_lock(db), answering():
        async with db.engine.begin() as connection:
            if not db.is_sqlite:
                key = int.from_bytes(hashlib.sha256(package.encode()).digest()[:7], "big")
                await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})
            await connection.run_sync(_upgrade, package)


def _upgrade(connection: Connection, package: str) -> None:
    settings = config(package)
    known = {script.revision for script in ScriptDirectory.from_config(settings).walk_revisions()}
    newer = set(MigrationContext.configure(connection).get_current_heads()) - known
    if newer:
        raise AlcoveError(
            "conflict",
            f"This database was last used by a newer Alcove ({package} {', '.join(sorted(newer))})."
            " Start that release, or put back the backup that was made before the upgrade.",
            reason="newer_schema",
        )
    settings.attributes["connection"] = connection
    command.upgrade(settings, "head")


async def drift(db: Database, metadata: MetaData) -> list[Any]:
    """How the database differs from `metadata`; empty when the migrations tell the same story."""

    def ask(connection: Connection) -> list[Any]:
        differences: list[Any] = compare_metadata(MigrationContext.configure(connection), metadata)
        return differences

    async with db.engine.connect() as connection:
        return await connection.run_sync(ask)


@contextmanager
def _file_lock(db: Database) -> Iterator[None]:
    path = make_url(db.url).database if db.is_sqlite else None
    if not path or path == ":memory:":
        yield
        return
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with Path(f"{path}.migrate.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(db: Database, package: str) -> None:
    """`python -m <service> migrate`: upgrades and leaves; what forbids it is told on stderr, with exit code 1."""

    async def run() -> None:
        try:
            await upgrade(db, package)
        finally:
            await db.close()

    try:
        asyncio.run(run())
    except AlcoveError as error:
        where = make_url(db.url).render_as_string(hide_password=True)
        why = getattr(error.__cause__, "orig", error.__cause__)
        told = f"{error.message} ({why})" if why else error.message
        print(f"{where}: {told}", file=sys.stderr)  # noqa: T201
        raise SystemExit(1) from None
    log.info("migrated", extra={"package": package})
