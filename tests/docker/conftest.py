"""A spawner's surroundings on a real engine, with an image whose agent is a stand-in."""

import asyncio
import io
import os
import tarfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.databases import template
from tests.missing import lacks
from tests.spawner.house import AGENTS, House, house

BASE = os.environ.get("ALCOVE_BASE_IMAGE", "alcove-base:bookworm")
IMAGE = "alcove-test-agent:local"
_DOCKERFILE = f"""
FROM {BASE}
RUN install -d -o 10001 -g 10001 -m 0700 /data && install -d /run/alcove/agent /run/alcove/meter
COPY agents.py /agents.py
ENV PYTHONDONTWRITEBYTECODE=1
CMD ["python3", "-I", "/agents.py", "good"]
"""


@pytest.fixture(scope="session")
def stand_in(docker_client: Any) -> str:
    """The image of stand-ins (tests/spawner/agents.py), built on the base that our images have."""
    import docker

    try:
        docker_client.images.get(BASE)
    except docker.errors.ImageNotFound:
        lacks(f"no image {BASE}", "make images")
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        for name, raw in (
            ("Dockerfile", _DOCKERFILE.encode()),
            ("agents.py", Path(AGENTS).read_bytes()),
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(raw)
            tar.addfile(entry, io.BytesIO(raw))
    context.seek(0)
    docker_client.images.build(fileobj=context, custom_context=True, tag=IMAGE, rm=True)
    return IMAGE


@pytest.fixture(scope="session")
def spawner_database() -> Path:
    """A migrated database that houses copy."""
    return asyncio.run(template("spawner"))


@pytest.fixture
async def home(
    tmp_path: Path,
    deployment: str,
    stand_in: str,
    docker_client: Any,
    spawner_database: Path,
) -> AsyncIterator[House]:
    """As in tests/spawner, but agents are containers. Their data lies in directories of the test's."""
    async with house(tmp_path, deployment, spawner_database) as made:
        made.overrides = {"runtime": "docker", "agent_image": stand_in}
        yield made
    for container in labelled(docker_client, deployment):
        container.remove(force=True)
    for volume in docker_client.volumes.list(filters={"label": f"alcove.deployment={deployment}"}):
        volume.remove(force=True)


@pytest.fixture
def sockets_volume(docker_client: Any, deployment: str) -> Iterator[str]:
    """A named volume of the test's own."""
    name = f"alcove-{deployment}-sockets"
    docker_client.volumes.create(name)
    yield name
    docker_client.volumes.get(name).remove(force=True)


def labelled(client: Any, deployment: str, **filters: str) -> list[Any]:
    """Containers of one deployment, running or not."""
    label = f"alcove.deployment={deployment}"
    found: list[Any] = client.containers.list(all=True, filters={"label": label, **filters})
    return found
