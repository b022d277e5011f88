"""What a container is run by, and what its tenant's data takes, as a real engine tells."""

import shutil
from typing import Any

import pytest

from spawner import choose
from spawner.errors import NoRuntime
from tests.docker.conftest import labelled
from tests.missing import lacks
from tests.spawner.house import House, tenant

pytestmark = pytest.mark.docker


async def test_spawner_does_not_begin_when_the_engine_does_not_know_the_runtime(
    home: House,
) -> None:
    for kind in ("auto", "docker"):
        settings = home.settings(runtime=kind, container_runtime="runsd")
        with pytest.raises(NoRuntime, match=r"no container runtime 'runsd' \(it knows .*runc"):
            await choose.choose(settings)


@pytest.mark.parametrize(
    "runtime", ["io.containerd.runc.v2", *(["runsc"] if shutil.which("runsc") else [])]
)
async def test_agent_runs_in_the_runtime_that_is_asked_for(
    home: House, docker_client: Any, runtime: str
) -> None:
    if runtime not in docker_client.info()["Runtimes"]:
        lacks(f"no container runtime {runtime}", "see docs/operating.md, A stronger wall")
    who = tenant()
    async with home.work(container_runtime=runtime) as at:
        host = await at.client.host()
        assert ("container_runtime", True) in [(one.name, one.ok) for one in host.probes]
        await at.ready(who)
        (container,) = labelled(docker_client, home.deployment)
        assert container.attrs["HostConfig"]["Runtime"] == runtime


async def test_data_is_measured_when_it_lies_in_volumes(home: House, docker_client: Any) -> None:
    who, nobody = tenant(), tenant()
    async with home.work(tenants_dir=None, poll_s=60) as at:
        await at.ready(who)
        (container,) = labelled(docker_client, home.deployment)
        code, _ = container.exec_run(["dd", "if=/dev/zero", "of=/data/x", "bs=1M", "count=3"])
        assert code == 0
        await at.spawner.storage.round()
        stored = (await at.client.instance(who)).stored_bytes
        assert stored is not None
        assert 3_000_000 < stored < 3_300_000
        assert await at.spawner.chosen.runtime.stored({nobody: 10}) == {}
