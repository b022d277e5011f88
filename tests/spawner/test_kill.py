"""kill -9 of the spawner at every transition: the next one converges, and a running agent is untouched."""

import contextlib

import pytest

from infra.kit.errors import AlcoveError
from spawner.faults import START_POINTS, STOP_POINTS
from tests.spawner.house import House, gone, tenant
from tests.spawner.program import program, reach
from tests.waiting import until

SERVE = ("tests.spawner.serve", "good")
pytestmark = pytest.mark.thorough  # each starts processes


@pytest.mark.parametrize("point", START_POINTS)
async def test_start_goes_on_when_the_spawner_was_killed(home: House, point: str) -> None:
    who = tenant()
    settings = home.settings(stop_on_exit=False)
    async with program(settings, *SERVE, fault=point) as first:
        with contextlib.suppress(AlcoveError):
            await first.client.wake(who, "message")
        await first.killed()
    before = home.starts(who)
    async with program(home.settings(), *SERVE) as second:
        await reach(second.client, who, "ready", 5)
        assert (await second.client.instance(who)).generation == 1
        assert len(home.starts(who)) == 1
        assert home.starts(who)[: len(before)] == before
        assert set(home.meter.keys) == {(who, 1)}
        phases = []
        async for event in second.client.events(who):
            phases.append(event.phase)
            if event.phase == "ready":
                break
        assert phases == list(dict.fromkeys(phases)), "a phase was told twice"
    assert gone(home.starts(who)[0].split()[1])


@pytest.mark.parametrize("point", STOP_POINTS)
async def test_stop_goes_on_when_the_spawner_was_killed(home: House, point: str) -> None:
    who = tenant()
    settings = home.settings(stop_on_exit=False)
    async with program(settings, *SERVE, fault=point) as first:
        await first.client.wake(who, "message")
        await reach(first.client, who, "ready", 10)
        with contextlib.suppress(AlcoveError):
            await first.client.stop(who)
        await first.killed()
    async with program(home.settings(), *SERVE) as second:
        await reach(second.client, who, "stopped", 5)
        await until(lambda: home.meter.keys == {}, timeout_s=5, what="the key's return")
        assert gone(home.starts(who)[0].split()[1])
        assert not (home.root / "s" / "t" / who).exists()
        await second.client.wake(who, "message")
        await reach(second.client, who, "ready", 5)


async def test_running_agents_are_found_again_when_the_spawner_was_killed(home: House) -> None:
    tenants = [tenant() for _ in range(3)]
    async with program(home.settings(stop_on_exit=False), *SERVE) as first:
        for who in tenants:
            await first.client.wake(who, "message")
        for who in tenants:
            await reach(first.client, who, "ready", 10)
        before = [await first.client.instance(who) for who in tenants]
        await first.kill()
    async with program(home.settings(), *SERVE) as second:
        after = [await second.client.instance(who) for who in tenants]
        for old, new in zip(before, after, strict=True):
            assert (new.state, new.generation, new.url) == ("ready", old.generation, old.url)
            assert new.started_at == old.started_at
        assert [len(home.starts(who)) for who in tenants] == [1, 1, 1]


async def test_agents_live_on_when_the_spawner_is_told_to_leave_them(home: House) -> None:
    who = tenant()
    async with program(home.settings(stop_on_exit=False), *SERVE) as first:
        await first.client.wake(who, "message")
        await reach(first.client, who, "ready", 10)
    pid = home.starts(who)[0].split()[1]
    assert not gone(pid)
    async with program(home.settings(stop_on_exit=True), *SERVE) as second:
        assert (await second.client.instance(who)).state == "ready"
    assert gone(pid)
