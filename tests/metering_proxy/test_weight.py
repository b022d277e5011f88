"""What a serving meter has in memory: nothing that only migrations, clients, or other databases need."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from infra.kit.db import Database
from tests.databases import to_head
from tests.metering_proxy.test_survival import Place

# Each of them costs megabytes, and some load others of them; docs/performance.md has what is left.
NOT_TO_SERVE = {
    "aiohttp",
    "alembic",
    "cryptography",
    "genai_prices",
    "opentelemetry.exporter",
    "opentelemetry.sdk",
    "sqlalchemy.ext.asyncio",
    "sqlalchemy.orm",
}
_SERVES = """
import asyncio, sys
from infra.kit import service, settings
from metering_proxy import __main__
from metering_proxy.app import create_app
from metering_proxy.settings import MeterSettings

async def main():
    meter = create_app(settings.load(MeterSettings))
    async with meter.running(), service.serving(meter.app, meter.settings.listen):
        print(*sys.modules)

asyncio.run(main())
"""


async def test_serving_meter_loads_nothing_that_it_does_not_need_to_serve(tmp_path: Path) -> None:
    loaded = await _loaded(Place(tmp_path, f"sqlite:///{tmp_path}/meter.db"))
    assert "metering_proxy.ledger.on_sqlite" in loaded
    assert loaded & {*NOT_TO_SERVE, "asyncpg"} == set()


@pytest.mark.postgres
async def test_meter_on_postgres_loads_nothing_of_sqlite(tmp_path: Path, postgres_url: str) -> None:
    loaded = await _loaded(Place(tmp_path, postgres_url))
    assert "metering_proxy.ledger.on_postgres" in loaded
    assert loaded & {*NOT_TO_SERVE, "aiosqlite", "sqlite3"} == set()


async def _loaded(place: Place) -> set[str]:
    """The modules of a meter that has begun to serve there."""
    db = Database(place.database_url)
    await to_head(db, "metering_proxy")
    await db.close()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _SERVES),
        env={**os.environ, **place.environment()},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    told, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()[-2_000:]
    return set(told.decode().split())
