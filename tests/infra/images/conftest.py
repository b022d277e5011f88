"""An installation of a test's own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.setup import engine
from tests.infra.images.installation import Installation
from tests.missing import lacks


@pytest.fixture
def installation(docker_client: Any, tmp_path: Path) -> Iterator[Installation]:
    """One Compose project, not up yet; nothing of it is left after the test."""
    if not engine.plugin_works("compose"):
        lacks(
            "no Docker Compose v2", "install the compose plugin, or run make test as root on Debian"
        )
    made = Installation(tmp_path, docker_client)
    yield made
    made.remove()
