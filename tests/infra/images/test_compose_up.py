"""An installation under Compose from cold: it comes up, loses nothing over down and up, and goes in order."""

import urllib.request

import pytest

from infra.cli import compose
from tests.infra.images.installation import Installation

pytestmark = [pytest.mark.compose, pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(600)]


def test_installation_comes_up_is_found_again_and_goes_in_order(installation: Installation) -> None:
    installation.up()
    with urllib.request.urlopen(f"http://127.0.0.1:{installation.port}/readyz") as answer:
        assert answer.status == 200
    host = installation.spawner("GET", "/host")
    assert host["runtime"] == "docker"
    assert host["wall"] is True

    before = installation.wake()
    (tenant,) = installation.containers()
    assert tenant.attrs["HostConfig"]["NetworkMode"] == "none"

    installation.compose("down")
    (still,) = installation.containers()
    assert (still.id, still.status) == (tenant.id, "running")

    installation.up()
    after = installation.wake()
    assert (after["state"], after["generation"]) == ("ready", before["generation"])
    (again,) = installation.containers()
    assert again.id == tenant.id

    volumes = installation.volumes()
    compose.down(installation.env_file)
    assert installation.containers() == []
    assert installation.volumes() == volumes
    assert any(installation.tenant in name for name in volumes)
