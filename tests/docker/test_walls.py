"""What a tenant's container may do, asked from inside, and what the engine was told, asked from outside."""

import json
from typing import Any

import pytest

from tests.docker.conftest import labelled
from tests.spawner.house import House, tenant

pytestmark = pytest.mark.docker

_INSIDE = """
import errno, json, os, socket
def tries(what):
    try:
        what()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines())
tmp = os.statvfs("/tmp")
print(json.dumps({
    "uid": os.getuid(), "groups": os.getgroups(),
    "caps": status["CapEff"], "bounding": status["CapBnd"],
    "no_new_privs": status["NoNewPrivs"], "seccomp": status["Seccomp"],
    "interfaces": [name for _, name in socket.if_nameindex()],
    "dials": tries(lambda: socket.create_connection(("169.254.169.254", 80), 1)),
    "root": tries(lambda: open("/x", "w")),
    "etc": tries(lambda: open("/etc/passwd", "a")),
    "tmp": tries(lambda: open("/tmp/x", "w")),
    "tmp_mb": tmp.f_blocks * tmp.f_frsize >> 20,
    "data": tries(lambda: open("/data/x", "w")),
    "key": open("/run/alcove/meter/key").read(),
    "meter": tries(lambda: open("/run/alcove/meter/x", "w")),
    "agent": tries(lambda: open("/run/alcove/agent/x", "w")),
    "relink": tries(lambda: os.symlink("/etc", "/run/alcove/agent/agent2.sock")),
    "rename": tries(lambda: os.rename("/run/alcove/agent/agent.sock", "/run/alcove/agent/b")),
    "secrets": [name for name in os.environ if "SECRET" in name and not name.endswith("_FILE")],
    "engine": os.path.exists("/var/run/docker.sock"),
}))
"""


@pytest.fixture
async def container(home: House, docker_client: Any) -> Any:
    """The container of a ready tenant."""
    who = tenant()
    async with home.work() as at:
        await at.ready(who)
        (found,) = labelled(docker_client, home.deployment)
        yield found


async def test_tenant_finds_walls_everywhere_when_it_looks_from_inside(
    home: House, container: Any
) -> None:
    code, output = container.exec_run(["python3", "-I", "-c", _INSIDE])
    assert code == 0, output
    seen = json.loads(output)
    assert (seen["uid"], seen["groups"]) == (10001, [10001])
    assert int(seen["caps"], 16) == 0
    assert int(seen["bounding"], 16) == 0
    assert (seen["no_new_privs"], seen["seccomp"]) == ("1", "2")
    assert seen["interfaces"] == ["lo"]
    assert seen["dials"] == "ENETUNREACH"
    assert (seen["root"], seen["etc"], seen["meter"]) == ("EROFS", "EACCES", "EROFS")
    assert (seen["tmp"], seen["tmp_mb"], seen["data"]) == ("done", 64, "done")
    assert seen["key"] in home.meter.keys.values()
    assert (seen["agent"], seen["relink"], seen["rename"]) == ("EACCES", "EACCES", "EACCES")
    assert seen["secrets"] == []
    assert not seen["engine"]


async def test_engine_is_told_every_limit_when_a_container_is_made(
    home: House, container: Any
) -> None:
    told = container.attrs["HostConfig"]
    assert told["NetworkMode"] == "none"
    assert told["CapDrop"] == ["ALL"]
    assert told["Memory"] == told["MemorySwap"] == 384 * 1024 * 1024
    assert (told["NanoCpus"], told["PidsLimit"]) == (500_000_000, 128)
    assert told["RestartPolicy"]["Name"] == "no"
    assert told["LogConfig"]["Config"] == {"max-size": "5m", "max-file": "2"}
    assert (told["Init"], told["AutoRemove"], told["Privileged"]) == (True, False, False)
    assert told["PortBindings"] in (None, {})
    assert sorted(mount["Destination"] for mount in container.attrs["Mounts"]) == [
        "/data",
        "/run/alcove/agent",
        "/run/alcove/meter",
    ]
    assert container.attrs["Config"]["Image"].startswith("sha256:")
    assert container.name.startswith(f"alcove-{home.deployment}-")
    variables = container.attrs["Config"]["Env"]
    assert not any(key in line for line in variables for key in home.meter.keys.values())
