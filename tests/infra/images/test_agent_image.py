"""What the tenant's image is and is not."""

import time
from typing import Any

import pytest

from infra.setup import images

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def image(docker_client: Any) -> Any:
    images.build(images.AGENT)
    return docker_client.images.get(images.AGENT[0])


def run(client: Any, image: Any, *command: str) -> str:
    output: bytes = client.containers.run(
        image.id, list(command), remove=True, read_only=True, network_mode="none", cap_drop=["ALL"]
    )
    return output.decode().strip()


def test_image_declares_a_user_and_neither_volume_nor_port_nor_health_check(image: Any) -> None:
    config = image.attrs["Config"]
    assert config["User"] == "10001:10001"
    assert not config.get("Volumes")
    assert not config.get("ExposedPorts")
    assert not config.get("Healthcheck")
    assert config["Cmd"] == ["python", "-m", "agent"]


def test_image_holds_the_agent_and_nothing_of_the_services(docker_client: Any, image: Any) -> None:
    program = (
        "import importlib.util as u;"
        "print([n for n in ('agent','infra.kit','orjson','pip','sqlalchemy','pydantic','aiohttp',"
        "'gateway','spawner','metering_proxy','infra.cli') if u.find_spec(n)])"
    )
    assert run(docker_client, image, "python", "-c", program) == "['agent', 'infra.kit', 'orjson']"


def test_data_belongs_to_the_agent_alone(docker_client: Any, image: Any) -> None:
    assert run(docker_client, image, "stat", "-c", "%u:%g %a", "/data") == "10001:10001 700"


def test_building_again_asks_the_engine_once_and_builds_nothing(image: Any) -> None:
    began = time.monotonic()
    images.build(images.AGENT)
    assert time.monotonic() - began < 3
    assert images.fingerprint(["agent_image/Dockerfile"], "a") != images.fingerprint(
        ["agent_image/Dockerfile"], "b"
    )
