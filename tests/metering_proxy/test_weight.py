"""What a serving meter has in memory: nothing that only migrations, clients, or other databases need."""

import asyncio
import os
import sys
from pathlib import Path

from infra.kit.db import Database
from tests.databases import to_head
from tests.metering_proxy.test_survival import Place

# Each of them costs megabytes, and some load others of them; docs/performance.md has what is left.
NOT_TO_SERVE = {
    "aiohttp",
    "alembic",
    "asyncpg",
    "cryptography",
    "genai_prices",
    "opentelemetry.exporter",
    "opentelemetry.sdk",
    "pydantic_settings",
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
    place = Place(tmp_path, f"sqlite:///{tmp_path}/meter.db")
    await to_head(Database(place.database_url), "metering_proxy")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _SERVES),
        env={**os.environ, **place.environment()},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    told, complaints = await process.communicate()
    loaded = set(told.decode().split())
    assert "metering_proxy.ledger.on_sqlite" in loaded, complaints.decode()[-2_000:]
    assert loaded & NOT_TO_SERVE == set()
