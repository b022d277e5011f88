"""A running meter for each test: on SQLite, or on both databases where a test asks for `both`."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from infra.kit.clock import FakeClock
from infra.kit.db import Database
from metering_proxy.ledger.ledger import Ledger
from tests.databases import template, to_head
from tests.metering_proxy.house import House, Tenant, a_house
from tests.scripted import ScriptedProvider


@pytest.fixture(scope="session")
def migrated() -> Path:
    """A migrated SQLite database to copy, since migrating is slower than most tests."""
    return asyncio.run(template("metering_proxy"))


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A meter on SQLite."""
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/meter.db") as running:
        yield running


@pytest.fixture
async def timed(tmp_path: Path, clock: FakeClock) -> AsyncIterator[House]:
    """A meter on SQLite that lives by the test's clock."""
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/meter.db", clock=clock) as running:
        yield running


@pytest.fixture
async def both(tmp_path: Path, database_url: str) -> AsyncIterator[House]:
    """A meter, once on SQLite and once on PostgreSQL."""
    async with a_house(tmp_path, database_url) as running:
        yield running


@pytest.fixture
async def tenant(house: House, scripted: ScriptedProvider) -> Tenant:
    """A free tenant of `house`, where the scripted provider is connected on OpenAI's wire."""
    await house.connect(scripted)
    return await house.tenant()


@pytest.fixture
async def anthropic_tenant(house: House, scripted: ScriptedProvider) -> Tenant:
    """A free tenant of `house`, where the scripted provider is connected on Anthropic's wire."""
    await house.connect(scripted, "anthropic_compatible")
    return await house.tenant()


@pytest.fixture
async def clocked(database_url: str, clock: FakeClock) -> AsyncIterator[tuple[Database, Ledger]]:
    """A migrated database and a started ledger that lives by the test's clock."""
    db = Database(database_url, durable=True, clock=clock)
    await to_head(db, "metering_proxy")
    ledger = Ledger(db, lease_s=60, clock=clock)
    ledger.start()
    yield db, ledger
    await ledger.close()
    await db.close()
