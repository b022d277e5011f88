"""Migrations and tables tell the same story, on both databases."""

from infra.kit import migrate, schema
from infra.kit.db import Database
from metering_proxy.models import metadata


async def test_migrated_database_is_what_the_code_declares(db: Database) -> None:
    assert not await schema.at_head(db, "metering_proxy")
    await migrate.upgrade(db, "metering_proxy")
    await migrate.upgrade(db, "metering_proxy")
    assert await schema.at_head(db, "metering_proxy")
    assert await migrate.drift(db, metadata) == []
