"""Fixtures that every room may use. What this machine lacks is said in one line, never passed over in
silence: a skip by default, a failure with ALCOVE_REQUIRE_ALL=1."""

import gc
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from infra.kit.clock import FakeClock
from infra.kit.db import Database
from tests import leaks, postgres
from tests.browser.chromium import path as chromium_path
from tests.draws import SEED
from tests.missing import lacks
from tests.scripted import ScriptedProvider, serve
from tests.waiting import until_sync

_DEPLOYMENTS: set[str] = set()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names the seed by which tests drew today."""
    terminalreporter.write_line(f"Draws of {SEED}; ALCOVE_TEST_SEED={SEED} repeats them.")


@pytest.fixture(scope="session", autouse=True)
def no_leftovers() -> Iterator[None]:
    """Fails the session if a process or a container that tests started is still there at its end."""
    leaks.adopt_orphans()
    before = set(leaks.children())
    yield

    def gone() -> bool:
        return not set(leaks.children()) - before

    try:
        until_sync(gone, timeout_s=5)
    except AssertionError:
        left = {pid: line for pid, line in leaks.children().items() if pid not in before}
        pytest.fail(f"processes left behind: {left}", pytrace=False)
    if _DEPLOYMENTS and (client := _engine()) is not None:
        found = leaks.containers_of(client, _DEPLOYMENTS)
        client.close()
        assert not found, f"containers left behind: {found}"


@pytest.fixture
async def scripted() -> AsyncIterator[ScriptedProvider]:
    """A model provider on loopback that follows the test's script; see tests/scripted/README.md."""
    async with serve(ScriptedProvider()) as provider:
        yield provider
    provider.verify()


@pytest.fixture
def clock() -> FakeClock:
    """A clock that stands still until the test moves it."""
    return FakeClock()


@pytest.fixture
def deployment() -> str:
    """The name of an installation of this test's own; containers labelled with it may not outlive the run."""
    name = f"test-{secrets.token_hex(4)}"
    _DEPLOYMENTS.add(name)
    return name


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """URL of a real PostgreSQL's administrator: ALCOVE_TEST_POSTGRES_URL, else a private server."""
    bin_dir = postgres.binaries()
    if bin_dir is None:
        lacks("no PostgreSQL", "apt-get install postgresql (only its binaries are used)")
    given = os.environ.get("ALCOVE_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    with postgres.cluster(bin_dir) as url:
        yield url


@pytest.fixture
def new_postgres_url(postgres_server: str) -> Iterator[Callable[[], str]]:
    """Makes empty databases, as many as a test asks for, dropped after it."""
    bin_dir = postgres.binaries()
    assert bin_dir is not None
    with ExitStack() as made:
        yield lambda: made.enter_context(postgres.fresh_database(bin_dir, postgres_server))


@pytest.fixture
def postgres_url(new_postgres_url: Callable[[], str]) -> str:
    """An empty database on a real PostgreSQL."""
    return new_postgres_url()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database, once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/test.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    """A pool on `database_url`."""
    database = Database(database_url)
    yield database
    await database.close()


@pytest.fixture(scope="session")
def docker_client() -> Iterator[Any]:
    """A real Docker Engine (docker-py)."""
    client = _engine()
    if client is None:
        lacks("no Docker Engine answers", "apt-get install docker.io, then start dockerd as root")
    yield client
    client.close()


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a real Chromium."""
    found = chromium_path()
    if not found:
        lacks("no Chromium", "apt-get install chromium")
    return found


def _engine() -> Any:
    import docker
    from docker.errors import DockerException

    try:
        client = docker.from_env(timeout=60)
        client.ping()
    except (DockerException, OSError):
        return None
    return client


def pytest_collection_finish() -> None:
    """Takes what was imported and collected out of the garbage collector's sight: it stays till the end."""
    gc.collect()
    gc.freeze()
