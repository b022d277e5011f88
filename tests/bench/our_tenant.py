"""What our meter in `bench-meter` is given from outside: its tables, a provider with a price, a tenant's key."""

import asyncio
from pathlib import Path

from infra.kit import migrate
from infra.kit.db import Database
from metering_proxy import wire
from metering_proxy.client import MeterClient
from tests.bench import our_meter
from tests.bench.openai_answers import MODEL


def prepare(database_url: str) -> None:
    """Makes the tables."""
    asyncio.run(_prepare(database_url))


async def _prepare(database_url: str) -> None:
    db = Database(database_url, durable=True)
    await migrate.upgrade(db, "metering_proxy")
    await db.close()


def provision(directory: Path, tenant: str, upstream: str) -> str:
    """The tenant's key, from the meter that runs in `directory`, once it has a provider."""
    return asyncio.run(_provision(directory, tenant, upstream))


async def _provision(directory: Path, tenant: str, upstream: str) -> str:
    row = wire.ModelRow(
        id=MODEL, input_nanos=150_000_000, output_nanos=600_000_000, max_output_tokens=4096
    )
    home = our_meter.sockets_of(directory) / "t" / tenant / "1" / "meter"
    home.mkdir(parents=True)
    async with MeterClient(our_meter.control_of(directory), our_meter.SECRET) as client:
        await client.create_provider(
            wire.NewProvider(
                kind="openai_compatible", name="Bench", base_url=f"{upstream}/v1", models=[row]
            )
        )
        minted = await client.mint_key(tenant, 1, str(home))
    return minted.key
