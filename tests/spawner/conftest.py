"""A house for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.spawner.house import House, house, migrated


@pytest.fixture(scope="session")
def spawner_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database that houses copy."""
    return migrated(tmp_path_factory.mktemp("spawner") / "empty.db")


@pytest.fixture
async def home(tmp_path: Path, deployment: str, spawner_database: Path) -> AsyncIterator[House]:
    """A spawner's surroundings; the test says when one works in them."""
    async with house(tmp_path, deployment, spawner_database) as made:
        yield made
