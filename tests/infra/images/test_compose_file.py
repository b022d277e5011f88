"""What docker-compose.yml grants, read through Compose itself."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra.cli.init import content
from infra.setup import engine
from metering_proxy.settings import MeterSettings
from tests.missing import lacks

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.compose
SERVICES = {"gateway", "spawner", "metering_proxy", "postgres", "chat", "embeddings"}
ONE_SHOTS = {"migrate", "agent-image"}


def compose(*arguments: str, env_file: Path) -> subprocess.CompletedProcess[str]:
    if not engine.plugin_works("compose"):
        lacks(
            "no Docker Compose v2", "install the compose plugin, or run make test as root on Debian"
        )
    clean = {name: os.environ[name] for name in ("PATH", "HOME")}
    return subprocess.run(
        ["docker", "compose", "--env-file", str(env_file), *arguments],
        cwd=ROOT,
        env=clean,
        capture_output=True,
        text=True,
    )


def read(env_file: Path, *more: str) -> dict[str, Any]:
    """The file as Compose understands it with a fresh .env, in which `more` stands too."""
    written = content("http://127.0.0.1:8000", Path("/var/run/docker.sock"), "base:test")
    env_file.write_text("\n".join([written, *more]))
    done = compose("config", "--format", "json", env_file=env_file)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return read(tmp_path_factory.mktemp("compose") / "env")


def test_compose_names_make_init_in_one_line_when_there_is_no_env_file(tmp_path: Path) -> None:
    (tmp_path / "env").touch()
    done = compose("up", "-d", "--wait", env_file=tmp_path / "env")
    assert done.returncode != 0
    assert len(done.stderr.strip().splitlines()) == 1
    assert "make init" in done.stderr


def test_every_service_is_known_to_these_tests(model: dict[str, Any]) -> None:
    assert set(model["services"]) == SERVICES | ONE_SHOTS


def test_every_service_is_walled_in(model: dict[str, Any]) -> None:
    for name, service in model["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "cap_add" not in service, name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert "privileged" not in service, name
        assert int(service["mem_limit"]) > 0, name
        assert service["pids_limit"] > 0, name
        assert service["logging"]["options"] == {"max-file": "3", "max-size": "10m"}, name


def test_meter_alone_knows_the_machine_that_it_runs_on(model: dict[str, Any]) -> None:
    knowing = {name for name, service in model["services"].items() if service.get("extra_hosts")}
    assert knowing == {"metering_proxy"}
    meter = model["services"]["metering_proxy"]
    name = meter["environment"]["ALCOVE_METER_HOST_NAME"]
    assert [host.replace("=", ":") for host in meter["extra_hosts"]] == [f"{name}:host-gateway"]
    assert meter["environment"]["ALCOVE_METER_LOOPBACK_PROVIDERS"] == ","


def test_servers_on_the_machine_are_looked_for_when_the_operator_says_so(tmp_path: Path) -> None:
    url = "http://host.docker.internal:11434"
    found = read(tmp_path / "env", f"ALCOVE_METER_LOOPBACK_PROVIDERS={url}")
    environment = found["services"]["metering_proxy"]["environment"]
    assert environment["ALCOVE_METER_LOOPBACK_PROVIDERS"] == url


def test_every_lasting_service_has_its_own_uid_and_a_health_check(model: dict[str, Any]) -> None:
    services = {name: model["services"][name] for name in SERVICES}
    running = services | {"migrate": model["services"]["migrate"]}
    uids = {name: service["user"].split(":")[0] for name, service in running.items()}
    assert len(set(uids.values())) == len(running)
    assert not {"0", "10001"} & set(uids.values())  # nobody's, and tenants'
    assert all(service["healthcheck"]["test"] for service in services.values())
    assert all(service["restart"] == "unless-stopped" for service in services.values())


def test_only_the_gateway_publishes_a_port_and_only_on_loopback(model: dict[str, Any]) -> None:
    published = {name for name, service in model["services"].items() if service.get("ports")}
    assert published == {"gateway"}
    (port,) = model["services"]["gateway"]["ports"]
    assert port["host_ip"] == "127.0.0.1"


def test_only_the_spawner_sees_the_docker_socket(model: dict[str, Any]) -> None:
    seen = {
        name
        for name, service in model["services"].items()
        for mount in service.get("volumes", [])
        if "docker.sock" in mount["source"] + mount["target"]
    }
    assert seen == {"spawner"}


def test_models_and_the_tenants_image_have_no_network(model: dict[str, Any]) -> None:
    for name in ("chat", "embeddings", "agent-image"):
        assert model["services"][name]["network_mode"] == "none"
    assert model["networks"]["database"]["internal"] is True
    assert set(model["services"]["spawner"]["networks"]) == {"database"}
    assert set(model["services"]["postgres"]["networks"]) == {"database"}


def test_one_shots_are_awaited_by_someone(model: dict[str, Any]) -> None:
    awaited = {
        name
        for service in model["services"].values()
        for name, how in service.get("depends_on", {}).items()
        if how["condition"] == "service_completed_successfully"
    }
    assert awaited == ONE_SHOTS


def test_meter_is_given_the_time_that_it_gives_to_answers(model: dict[str, Any]) -> None:
    given = re.fullmatch(
        r"(?:(\d+)m)?(\d+)s", model["services"]["metering_proxy"]["stop_grace_period"]
    )
    assert given is not None
    grace_s = MeterSettings.model_fields["stream_grace_s"].default
    assert int(given[1] or 0) * 60 + int(given[2]) > grace_s


def test_services_hear_of_what_an_operator_adds_to_env(
    model: dict[str, Any], tmp_path: Path
) -> None:
    added = {
        ("gateway", "ALCOVE_GATEWAY_SIGNUP"): "closed",
        ("gateway", "ALCOVE_GATEWAY_TRUSTED_PROXIES"): "10.0.0.1",
        ("spawner", "ALCOVE_CONTAINER_RUNTIME"): "runsc",
        ("metering_proxy", "ALCOVE_SEALING_KEYS_OLD"): "ab" * 32,
    }
    told = read(tmp_path / "env", *(f"{name}={value}" for (_, name), value in added.items()))
    for (service, name), value in added.items():
        assert told["services"][service]["environment"][name] == value
        assert model["services"][service]["environment"][name] in ("", "open")


def test_no_service_is_given_a_secret_it_has_no_use_for(model: dict[str, Any]) -> None:
    def given(service: str) -> set[str]:
        return set(model["services"][service].get("environment", {}))

    assert "ALCOVE_SEALING_KEY" not in given("spawner")
    assert "ALCOVE_DEPLOYMENT_SECRET" not in given("metering_proxy")
    assert not any("ALCOVE" in name for name in given("chat") | given("embeddings"))
    keys = [
        model["services"][name]["environment"]["ALCOVE_SEALING_KEY"]
        for name in ("gateway", "metering_proxy")
    ]
    assert keys[0] != keys[1]
