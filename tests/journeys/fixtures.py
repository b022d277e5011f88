"""The house as a fixture, for stories with and without a browser: on SQLite and on PostgreSQL, with agents as
processes and as containers."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from infra.setup import images
from tests.journeys.house import SERVICES, House, sqlite_databases
from tests.journeys.pair import Pair, two_people
from tests.missing import lacks
from tests.scripted import ScriptedProvider

# Put on a story (or as its module's mark), it is told on SQLite and on PostgreSQL; without it on SQLite.
ON_BOTH = pytest.mark.parametrize(
    "databases",
    ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)],
    indirect=True,
)


@pytest.fixture
def databases(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """URLs of three empty databases."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return sqlite_databases(tmp_path)
    new: Callable[[], str] = request.getfixturevalue("new_postgres_url")
    return {service: new() for service in SERVICES}


@pytest.fixture(scope="session")
def agent_image(docker_client: Any) -> str:
    """The image of agents, as it was built."""
    tag = images.AGENT[0]
    if not docker_client.images.list(tag):
        lacks(f"no image {tag}", "make images")
    return tag


@pytest.fixture
def runtime(request: pytest.FixtureRequest) -> str:
    """What agents run as: containers in a story that is marked `docker`, processes in all others."""
    if request.node.get_closest_marker("docker") is None:
        return "process"
    request.getfixturevalue("agent_image")
    return "docker"


@pytest.fixture
def house_settings() -> dict[str, str]:
    """Settings that a module's stories need; override it there."""
    return {}


@pytest.fixture
async def house(
    tmp_path: Path,
    deployment: str,
    databases: dict[str, str],
    runtime: str,
    house_settings: dict[str, str],
    scripted: ScriptedProvider,
) -> AsyncIterator[House]:
    """A running house with the scripted provider connected as the default."""
    built = House(tmp_path / "house", deployment, databases, runtime, house_settings)
    try:
        await built.start()
        await built.connect(scripted)
        yield built
    finally:
        await built.close()


@pytest.fixture
async def pair(house: House, scripted: ScriptedProvider) -> AsyncIterator[Pair]:
    """Two people in the house."""
    async with two_people(house, scripted) as people:
        yield people
