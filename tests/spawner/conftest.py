"""A house for each test."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.databases import template
from tests.spawner.house import House, house


@pytest.fixture(scope="session")
def spawner_database() -> Path:
    """A migrated database that houses copy."""
    return asyncio.run(template("spawner"))


@pytest.fixture
async def home(tmp_path: Path, deployment: str, spawner_database: Path) -> AsyncIterator[House]:
    """A spawner's surroundings; the test says when one works in them."""
    async with house(tmp_path, deployment, spawner_database) as made:
        yield made
