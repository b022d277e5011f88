"""From nothing to a ready agent, and back: phases, joining, queueing, cancelling."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from infra.kit import ids
from infra.kit.errors import AlcoveError
from tests.spawner.house import SECRET, House, Working, gone, tenant
from tests.waiting import until

pytestmark = pytest.mark.thorough


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def phases(at: Working, who: str, after: int = 0) -> list[str]:
    return [event.phase for event in await at.spawner.journal.after(who, after)]


async def test_wake_tells_every_phase_when_never_started(home: House) -> None:
    who = tenant()
    async with home.work() as at:
        assert (await at.client.instance(who)).state == "absent"
        first = await at.client.wake(who, "message")
        assert (first.state, first.generation, first.url) == ("creating", 1, None)
        ready = await at.reach(who, "ready")
        assert ready.url is not None
        assert ready.url.endswith(f"/t/{who}/1/agent/agent.sock")
        assert ready.owner_uid == os.geteuid()
        assert ready.alive_because is not None
        events = await at.spawner.journal.after(who, 0)
        told = ["key", "volume", "create", "start", "answering", "ready"]
        assert [event.phase for event in events] == told
        assert [event.seq for event in events] == [1, 2, 3, 4, 5, 6]
        assert ready.seq == 6
        assert {event.generation for event in events} == {1}


async def test_phases_carry_their_usual_length_when_there_was_a_start_before(home: House) -> None:
    async with home.work() as at:
        await at.ready(tenant())
        who = tenant()
        await at.ready(who)
        usual = {event.phase: event.typical_ms for event in await at.spawner.journal.after(who, 0)}
        assert usual["answering"] is not None
        assert 0 < usual["answering"] < 10_000
        assert usual["ready"] is None


async def test_directories_are_sealed_and_secrets_readable_by_group_alone_when_ready(
    home: House,
) -> None:
    who = tenant()
    async with home.work() as at:
        await at.ready(who)
        place = home.root / "s" / "t" / who / "1"
        assert mode(home.root / "s") == 0o2771
        assert mode(place) == 0o2771
        assert mode(place / "agent") & 0o222 == 0
        assert mode(place / "meter") == 0o2770
        assert mode(place / "meter" / "key") == 0o440
        assert (place / "meter" / "key").read_text() == home.meter.keys[who, 1]
        secret = (place / "meter" / "instance_secret").read_text()
        assert secret == ids.instance_secret(SECRET[::-1], who, 1)
        assert sorted(path.name for path in (place / "meter").iterdir()) == [
            "instance_secret",
            "key",
        ]


async def test_parallel_wakes_join_one_start(home: House) -> None:
    who = tenant()
    async with home.work() as at:
        answers = await asyncio.gather(*(at.client.wake(who, "message") for _ in range(8)))
        assert {answer.generation for answer in answers} == {1}
        await at.reach(who, "ready")
        assert len(home.starts(who)) == 1
        again = await at.client.wake(who, "message")
        assert (again.state, again.generation) == ("ready", 1)


async def test_stop_leaves_data_and_takes_the_key_back_when_ready(home: House) -> None:
    who = tenant()
    async with home.work() as at:
        await at.ready(who)
        (home.data(who) / "diary").write_text("mine")
        answer = await at.client.stop(who)
        assert answer.state == "stopping"
        stopped = await at.reach(who, "stopped")
        assert stopped.url is None
        assert home.meter.keys == {}
        assert not (home.root / "s" / "t" / who).exists()
        assert (home.data(who) / "diary").read_text() == "mine"
        assert (await at.client.stop(who)).state == "stopped"
        assert (await at.ready(who)).generation == 2


async def test_start_is_cancelled_when_a_stop_comes(home: House) -> None:
    who = tenant()
    home.kind = "never"
    async with home.work() as at:
        await at.client.wake(who, "message")
        await until(lambda: home.starts(who), what="the agent's start")
        pid = at.pid(who)
        await at.client.stop(who)
        stopped = await at.reach(who, "stopped")
        assert stopped.error is None
        assert gone(pid)
        assert (await phases(at, who))[-2:] == ["stopping", "stopped"]


async def test_start_waits_when_a_stop_is_under_way(home: House) -> None:
    who = tenant()
    home.kind = "stubborn"
    async with home.work() as at:
        await at.ready(who)
        await at.client.stop(who)
        wanted = await at.client.wake(who, "message")
        assert wanted.state == "stopping"
        ready = await at.reach(who, "ready")
        assert ready.generation == 2
        seen = await phases(at, who)
        assert seen.index("stopped") < seen.index("key", 6)


async def test_stubborn_agent_and_its_child_are_killed_when_the_grace_is_over(home: House) -> None:
    who = tenant()
    home.kind = "stubborn"
    async with home.work() as at:
        await at.ready(who)
        session = at.pid(who)
        await at.client.stop(who)
        await at.reach(who, "stopped")
        assert _session(session) == []


def _session(leader: int) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(entry.parent.name)
    return found


async def test_starts_queue_when_all_places_are_taken(home: House) -> None:
    home.kind = "slow"
    tenants = [tenant() for _ in range(5)]
    async with home.work(concurrent_starts=2) as at:
        for who in tenants:
            await at.client.wake(who, "message")
        states = [(await at.client.instance(who)).state for who in tenants]
        assert states.count("absent") == 3
        last = (await at.spawner.journal.after(tenants[-1], 0))[-1]
        assert (last.phase, last.message) == (
            "queued",
            "Your assistant waits for a free place: 2 before you",
        )
        most = 0

        async def all_ready() -> bool:
            nonlocal most
            page = await at.client.query(ids=tenants)
            states = [row.state for row in page.rows]
            most = max(most, states.count("creating") + states.count("starting"))
            return states.count("ready") == 5

        await until(all_ready, timeout_s=20, what="all five")
        assert most == 2
        begun = [
            next(e.at for e in await at.spawner.journal.after(who, 0) if e.phase == "key")
            for who in tenants
        ]
        assert begun == sorted(begun)


async def test_stop_takes_a_queued_start_out_of_the_queue(home: House) -> None:
    home.kind = "slow"
    first, second = tenant(), tenant()
    async with home.work(concurrent_starts=1) as at:
        await at.client.wake(first, "message")
        await at.client.wake(second, "message")
        assert (await at.client.stop(second)).phase == "stopped"
        await at.reach(first, "ready")
        assert (await at.client.instance(second)).state == "absent"
        assert home.starts(second) == []


async def test_wake_is_refused_when_suspended(home: House) -> None:
    who = tenant()
    async with home.work() as at:
        await at.ready(who)
        assert (await at.client.suspend(who)).state == "stopping"
        await at.reach(who, "stopped")
        with pytest.raises(AlcoveError) as caught:
            await at.client.wake(who, "message")
        assert (caught.value.code, caught.value.reason) == ("forbidden", "suspended")
        assert not (await at.client.resume(who)).suspended
        assert (await at.ready(who)).generation == 2


async def test_plan_of_the_key_becomes_the_instances_plan(home: House) -> None:
    who = tenant()
    home.meter.plan = "plus"
    async with home.work() as at:
        assert (await at.client.set_plan(who, "free")).plan == "free"
        assert (await at.ready(who)).plan == "plus"
        with pytest.raises(AlcoveError, match="no plan"):
            await at.client.set_plan(who, "golden")


async def test_all_tenants_end_when_the_spawner_stops_them_on_exit(home: House) -> None:
    tenants = [tenant() for _ in range(3)]
    home.kind = "stubborn"
    async with home.work() as at:
        for who in tenants:
            await at.ready(who)
        pids = [at.pid(who) for who in tenants]
    assert all(gone(pid) for pid in pids)
    assert home.meter.keys == {}
