"""Lives of containers: started, replaced, taken away by hand, killed, left over; one a tenant, always."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from spawner import choose
from spawner.errors import NoRuntime
from spawner.runtimes import Spec
from tests.docker.conftest import labelled
from tests.missing import lacks
from tests.spawner.house import House, house, tenant
from tests.waiting import until

pytestmark = pytest.mark.docker


async def test_container_is_made_anew_when_started_again(home: House, docker_client: Any) -> None:
    who = tenant()
    async with home.work() as at:
        await at.ready(who)
        (first,) = labelled(docker_client, home.deployment)
        (home.data(who) / "diary").write_text("mine")
        await at.client.stop(who)
        await at.reach(who, "stopped")
        assert labelled(docker_client, home.deployment) == []
        assert home.meter.keys == {}
        assert (await at.ready(who)).generation == 2
        (second,) = labelled(docker_client, home.deployment)
        assert second.id != first.id
        assert second.labels["alcove.generation"] == "2"
        assert (home.data(who) / "diary").read_text() == "mine"


async def test_one_container_when_eight_ask_at_once(home: House, docker_client: Any) -> None:
    who = tenant()
    async with home.work() as at:
        await asyncio.gather(*(at.client.wake(who, "message") for _ in range(8)))
        await at.reach(who, "ready")
        assert len(labelled(docker_client, home.deployment)) == 1
        assert len(home.starts(who)) == 1


async def test_tenant_is_stopped_and_replaced_when_its_container_is_removed_by_hand(
    home: House, docker_client: Any
) -> None:
    who = tenant()
    async with home.work(poll_s=60) as at:
        await at.ready(who)
        (container,) = labelled(docker_client, home.deployment)
        await asyncio.to_thread(container.remove, force=True)
        # A removal kills first: what is seen is a death or an absence, never `ready`.
        await until(lambda: home.meter.keys == {}, timeout_s=2, what="the key's return")
        assert (await at.client.instance(who)).state in ("stopped", "failed")
        assert (await at.ready(who)).generation == 2


async def test_death_is_noticed_within_a_second_when_a_container_is_killed(
    home: House, docker_client: Any
) -> None:
    who = tenant()
    async with home.work(poll_s=60) as at:
        await at.ready(who)
        (container,) = labelled(docker_client, home.deployment)
        await asyncio.to_thread(container.kill)
        failed = await at.reach(who, "failed", timeout_s=1.5)
        assert failed.error is not None
        assert failed.error.code == "agent_died"
        await until(lambda: labelled(docker_client, home.deployment) == [], what="its removal")


async def test_start_fails_and_leads_nowhere_when_the_socket_is_a_link(
    home: House, docker_client: Any
) -> None:
    who = tenant()
    (home.data(who) / "kind").write_text("symlink")
    async with home.work() as at:
        await at.client.wake(who, "message")
        failed = await at.reach(who, "failed")
        assert failed.error is not None
        assert failed.error.code == "untrusted_socket"
        assert labelled(docker_client, home.deployment) == []


async def test_start_fails_with_its_cause_when_the_agent_ends(home: House) -> None:
    who = tenant()
    (home.data(who) / "kind").write_text("dying")
    async with home.work() as at:
        await at.client.wake(who, "message")
        failed = await at.reach(who, "failed")
        assert failed.error is not None
        assert failed.error.message == "the agent ended (exit code 3)"


async def test_stubborn_container_is_killed_when_its_grace_is_over(
    home: House, docker_client: Any
) -> None:
    who = tenant()
    (home.data(who) / "kind").write_text("stubborn")
    async with home.work(stop_grace_s=1) as at:
        await at.ready(who)
        await at.client.stop(who)
        await at.reach(who, "stopped", timeout_s=5)
        assert labelled(docker_client, home.deployment) == []


async def test_older_container_gives_way_when_it_holds_the_name(
    home: House, docker_client: Any
) -> None:
    who = tenant()
    async with home.work(stop_on_exit=False) as at:
        await at.ready(who)
        (old,) = labelled(docker_client, home.deployment)
        runtime, layout = at.spawner.chosen.runtime, at.spawner.chosen.layout
        layout.make(who, 5)
        limits = at.spawner.plans.limits("free")
        spec = Spec(who, 5, layout.agent(who, 5), layout.meter(who, 5), limits)
        await asyncio.gather(*(runtime.create(spec) for _ in range(4)))
        (new,) = labelled(docker_client, home.deployment)
        assert new.id != old.id
        assert new.labels["alcove.generation"] == "5"
        await runtime.stop(who, 1, grace_s=0)
        assert len(labelled(docker_client, home.deployment)) == 1
        await runtime.stop(who, 5, grace_s=0)


async def test_orphan_is_removed_and_a_neighbours_container_is_not(
    home: House, docker_client: Any, spawner_database: Path
) -> None:
    who, neighbour = tenant(), tenant()
    async with house(home.root / "next", f"{home.deployment}-b", spawner_database) as next_door:
        next_door.overrides = home.overrides
        async with next_door.work() as there:
            await there.ready(neighbour)
            async with home.work(stop_on_exit=False) as at:
                await at.ready(who)
            (home.root / "spawner.db").unlink()
            await home.migrate()
            async with home.work(orphan_grace_s=0):
                await until(lambda: labelled(docker_client, home.deployment) == [], what="a sweep")
            assert len(labelled(docker_client, next_door.deployment)) == 1
            assert (await there.client.instance(neighbour)).state == "ready"


async def test_data_lives_in_a_named_volume_when_no_directory_is_set(
    home: House, docker_client: Any
) -> None:
    who = tenant()
    async with home.work(tenants_dir=None) as at:
        await at.ready(who)
        (container,) = labelled(docker_client, home.deployment)
        (data,) = [one for one in container.attrs["Mounts"] if one["Destination"] == "/data"]
        assert (data["Type"], data["Name"]) == ("volume", f"alcove-{home.deployment}-{who}")
        code, _ = container.exec_run(["python3", "-c", "open('/data/diary', 'w').write('mine')"])
        assert code == 0
        await at.client.stop(who)
        await at.reach(who, "stopped")
        await at.ready(who)
        (container,) = labelled(docker_client, home.deployment)
        _, output = container.exec_run(["cat", "/data/diary"])
        assert output == b"mine"


async def test_sockets_are_mounted_by_their_mountpoint_when_they_lie_in_a_volume(
    home: House, docker_client: Any, sockets_volume: str
) -> None:
    if os.geteuid() != 0:
        lacks("a volume's mountpoint is seen by root alone", "run the tests as root")
    where = docker_client.volumes.get(sockets_volume).attrs["Mountpoint"]
    mounted = home.root / "mounted"  # as Compose mounts the volume in the spawner: another path
    mounted.symlink_to(where)
    who = tenant()
    async with home.work(sockets_dir=mounted, sockets_volume=sockets_volume) as at:
        ready = await at.ready(who)
        assert ready.url == f"unix://{mounted}/t/{who}/1/agent/agent.sock"
        (container,) = labelled(docker_client, home.deployment)
        sources = {one["Destination"]: one["Source"] for one in container.attrs["Mounts"]}
        assert sources["/run/alcove/agent"] == f"{where}/t/{who}/1/agent"
        assert sources["/run/alcove/meter"] == f"{where}/t/{who}/1/meter"


async def test_every_probe_passes_when_the_engine_is_here(home: House) -> None:
    async with home.work() as at:
        host = await at.client.host()
    assert (host.runtime, host.wall) == ("docker", True)
    assert [(one.name, one.ok) for one in host.probes[:3]] == [
        ("engine", True),
        ("image", True),
        ("shared_socket", True),
    ]


async def test_docker_is_refused_with_a_remedy_when_the_image_is_missing(home: House) -> None:
    settings = home.settings(agent_image="alcove-no-such-image:local")
    with pytest.raises(NoRuntime, match="alcove-no-such-image:local is not there"):
        await choose.choose(settings)
    chosen = await choose.choose(settings.model_copy(update={"runtime": "auto"}))
    await chosen.close()
    assert chosen.runtime.name == "process"
    assert [(one.name, one.ok) for one in chosen.probes] == [("engine", True), ("image", False)]
    assert chosen.probes[-1].remedy == "Run: make images"
