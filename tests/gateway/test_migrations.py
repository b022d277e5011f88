"""The migrations tell the same story as the tables, on both databases."""

from gateway.models import metadata
from infra.kit import migrate, schema
from infra.kit.db import Database


async def test_database_has_no_drift_when_migrated(db: Database) -> None:
    await migrate.upgrade(db, "gateway")
    assert await schema.at_head(db, "gateway")
    assert await migrate.drift(db, metadata) == []


async def test_upgrade_changes_nothing_when_run_again(db: Database) -> None:
    await migrate.upgrade(db, "gateway")
    await migrate.upgrade(db, "gateway")
    assert await schema.at_head(db, "gateway")
