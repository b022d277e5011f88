"""As tests/spawner/test_kill.py, with containers: no container too many, no running agent touched."""

import contextlib
from typing import Any

import pytest

from infra.kit.errors import AlcoveError
from spawner.faults import START_POINTS, STOP_POINTS
from tests.docker.conftest import labelled
from tests.spawner.house import House, tenant
from tests.spawner.program import program, reach

pytestmark = [pytest.mark.docker, pytest.mark.slow]


@pytest.mark.parametrize("point", START_POINTS)
async def test_start_goes_on_when_the_spawner_was_killed(
    home: House, docker_client: Any, point: str
) -> None:
    who = tenant()
    async with program(home.settings(stop_on_exit=False), "spawner", fault=point) as first:
        with contextlib.suppress(AlcoveError):
            await first.client.wake(who, "message")
        await first.killed()
    running = labelled(docker_client, home.deployment, status="running")
    async with program(home.settings(), "spawner") as second:
        await reach(second.client, who, "ready", 5)
        assert (await second.client.instance(who)).generation == 1
        (container,) = labelled(docker_client, home.deployment)
        assert [one.id for one in running] in ([], [container.id])
        assert len(home.starts(who)) == 1
        assert set(home.meter.keys) == {(who, 1)}
    assert labelled(docker_client, home.deployment) == []


@pytest.mark.parametrize("point", STOP_POINTS)
async def test_stop_goes_on_when_the_spawner_was_killed(
    home: House, docker_client: Any, point: str
) -> None:
    who = tenant()
    async with program(home.settings(stop_on_exit=False), "spawner", fault=point) as first:
        await first.client.wake(who, "message")
        await reach(first.client, who, "ready", 10)
        with contextlib.suppress(AlcoveError):
            await first.client.stop(who)
        await first.killed()
    async with program(home.settings(), "spawner") as second:
        await reach(second.client, who, "stopped", 5)
        assert labelled(docker_client, home.deployment) == []
        assert home.meter.keys == {}


async def test_containers_live_on_and_are_found_again_when_the_spawner_leaves(
    home: House, docker_client: Any
) -> None:
    tenants = [tenant() for _ in range(3)]
    async with program(home.settings(stop_on_exit=False), "spawner") as first:
        for who in tenants:
            await first.client.wake(who, "message")
        for who in tenants:
            await reach(first.client, who, "ready", 15)
        await first.kill()
    before = {one.id for one in labelled(docker_client, home.deployment, status="running")}
    async with program(home.settings(), "spawner") as second:
        rows = (await second.client.query(ids=tenants)).rows
        assert {row.state for row in rows} == {"ready"}
        after = {one.id for one in labelled(docker_client, home.deployment, status="running")}
        assert before == after
        assert len(after) == 3
    assert labelled(docker_client, home.deployment) == []
