"""A house for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.spawner.house import House, house


@pytest.fixture
async def home(tmp_path: Path, deployment: str) -> AsyncIterator[House]:
    """A spawner's surroundings; the test says when one works in them."""
    async with house(tmp_path, deployment) as made:
        yield made
