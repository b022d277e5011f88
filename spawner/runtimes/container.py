"""What a tenant's container is: the whole body of its create call, hardened, and its labels.

Nothing of it comes from a caller: a tenant id, a generation and a plan's limits are all that vary.
"""

from typing import Any

from spawner.plans import Limits

AGENT_DIR = "/run/alcove/agent"
METER_DIR = "/run/alcove/meter"
DEPLOYMENT = "alcove.deployment"
TENANT = "alcove.tenant"
GENERATION = "alcove.generation"
SPEC = "alcove.spec"
_OPEN_FILES = 1024


def environment(tenant: str, generation: int) -> dict[str, str]:
    """What the agent is told. Secrets are files, never variables: an inspect would show those."""
    return {
        "ALCOVE_AGENT_SOCKET": f"{AGENT_DIR}/agent.sock",
        "ALCOVE_AGENT_METER_URL": f"unix://{METER_DIR}/meter.sock",
        "ALCOVE_AGENT_KEY_FILE": f"{METER_DIR}/key",
        "ALCOVE_AGENT_SECRET_FILE": f"{METER_DIR}/instance_secret",
        "ALCOVE_AGENT_DATA_DIR": "/data",
        "ALCOVE_AGENT_TENANT": tenant,
        "ALCOVE_AGENT_GENERATION": str(generation),
    }


def labels(deployment: str, tenant: str, generation: int, spec: str) -> dict[str, str]:
    """How a restarted spawner finds it again."""
    return {
        DEPLOYMENT: deployment,
        TENANT: tenant,
        GENERATION: str(generation),
        SPEC: spec,
    }


def hardened(client: Any, limits: Limits, binds: list[str], runtime: str | None) -> dict[str, Any]:
    """The engine's HostConfig: no network, no capability, no new privilege, a root that is read only,
    a bound on everything that can be filled but the tenant's data (storage.py). Never removed and never
    restarted by the engine itself. `runtime`: another than the engine's own choice."""
    memory = limits.memory_mb * 1024 * 1024
    config: dict[str, Any] = client.create_host_config(
        runtime=runtime,
        network_mode="none",
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true"],
        read_only=True,
        tmpfs={"/tmp": f"rw,nosuid,nodev,size={limits.tmp_mb}m,mode=1777"},  # noqa: S108 (its own)
        shm_size=16 * 1024 * 1024,
        mem_limit=memory,
        memswap_limit=memory,
        nano_cpus=round(limits.cpus * 1_000_000_000),
        pids_limit=limits.pids,
        ulimits=[
            {"Name": "nofile", "Soft": _OPEN_FILES, "Hard": _OPEN_FILES},
            {"Name": "core", "Soft": 0, "Hard": 0},
        ],
        init=True,
        auto_remove=False,
        restart_policy={"Name": "no"},
        log_config={"Type": "json-file", "Config": {"max-size": "5m", "max-file": "2"}},
        binds=binds,
    )
    return config
