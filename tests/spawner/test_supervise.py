"""What is noticed of running agents: how busy they are, that one died, that one was taken away."""

import asyncio
import json
import os
import signal

import pytest

from spawner.runtimes import Found
from spawner.runtimes.process import ProcessRuntime
from tests.spawner.house import House, gone, tenant
from tests.waiting import until

pytestmark = pytest.mark.thorough


async def test_status_is_stored_when_an_agent_is_busy(home: House) -> None:
    who = tenant()
    told = {"in_flight": 1, "next_schedule_at": 9_999_999_999_999, "unread": 3}
    (home.data(who) / "status.json").write_text(json.dumps(told))
    async with home.work() as at:
        await at.ready(who)

        async def known() -> bool:
            now = await at.client.instance(who)
            return now.alive_because == "a turn is running"

        await until(known, what="the turn in flight")
        assert (await at.client.instance(who)).next_schedule_at == 9_999_999_999_999


async def test_death_is_noticed_within_a_second_when_an_agent_is_killed(home: House) -> None:
    who = tenant()
    async with home.work(poll_s=60) as at:
        await at.ready(who)
        os.kill(at.pid(who), signal.SIGKILL)
        failed = await at.reach(who, "failed", timeout_s=1)
        assert failed.error is not None
        assert failed.error.code == "agent_died"
        assert "137" in failed.error.message
        await until(lambda: home.meter.keys == {}, what="the key's return")
        assert (await at.ready(who)).generation == 2


async def test_agent_is_started_anew_when_it_died_in_a_turn(home: House) -> None:
    who = tenant()
    (home.data(who) / "status.json").write_text(json.dumps({"in_flight": 1}))
    async with home.work() as at:
        await at.ready(who)

        async def busy() -> bool:
            return (await at.client.instance(who)).alive_because == "a turn is running"

        await until(busy, what="the turn in flight")
        os.kill(at.pid(who), signal.SIGKILL)

        async def again() -> bool:
            now = await at.client.instance(who)
            return (now.state, now.generation) == ("ready", 2)

        await until(again, what="the second generation")


async def test_restarts_end_when_an_agent_dies_each_time(home: House) -> None:
    who = tenant()
    async with home.work() as at:
        await at.ready(who)
        await at.client.person_was_here(who, 1 << 52)
        (home.data(who) / "kind").write_text("dying")
        os.kill(at.pid(who), signal.SIGKILL)

        async def given_up() -> bool:
            now = await at.client.instance(who)
            return now.state == "failed" and now.retry_at is not None and now.phase == "failed"

        await until(given_up, what="no further try")
        assert len(home.starts(who)) <= 2


@pytest.mark.slow
async def test_agent_is_started_three_times_unasked_and_then_again_when_a_person_writes(
    home: House,
) -> None:
    who = tenant()
    (home.data(who) / "status.json").write_text(json.dumps({"in_flight": 1}))
    async with home.work() as at:
        await at.ready(who)
        for generation in range(1, 5):

            async def busy(generation: int = generation) -> bool:
                now = await at.client.instance(who)
                return (now.alive_because, now.generation) == ("a turn is running", generation)

            await until(busy, timeout_s=20, what=f"generation {generation} in a turn")
            os.kill(at.pid(who), signal.SIGKILL)

        async def rests() -> bool:
            now = await at.client.instance(who)
            return (now.state, now.phase, now.generation) == ("failed", "failed", 4)

        await until(rests, what="the end of unasked starts")
        await at.client.wake(who, "message")
        assert (await at.reach(who, "ready", timeout_s=20)).generation == 5


class Forgetful(ProcessRuntime):
    """An engine whose list is not whole."""

    whole = True

    async def instances(self, tenant: str | None = None) -> list[Found]:
        return await super().instances(tenant) if self.whole else []


async def test_living_agent_is_left_alone_when_the_engines_list_is_not_whole(home: House) -> None:
    who = tenant()
    async with home.work(runtime_class=Forgetful, poll_s=60) as at:
        before = await at.ready(who)
        runtime = at.spawner.chosen.runtime
        assert isinstance(runtime, Forgetful)
        runtime.whole = False
        await at.spawner.supervise()
        assert await at.client.instance(who) == before
        assert not gone(at.pid(who))
        runtime.whole = True


async def test_wake_starts_anew_when_the_agent_died_a_moment_ago(home: House) -> None:
    who = tenant()
    async with home.work(poll_s=60) as at:
        await at.ready(who)
        pid = at.pid(who)
        os.kill(pid, signal.SIGKILL)
        await until(lambda: gone(pid), what="its end")
        answer = await at.client.wake(who, "message")
        assert answer.state != "ready"
        assert (await at.reach(who, "ready")).generation == 2


async def test_instance_is_failed_when_its_agent_falls_silent(home: House) -> None:
    who = tenant()
    async with home.work() as at:
        await at.ready(who)
        (home.data(who) / "status.json").write_text('{"in_flight": "many"}')
        failed = await at.reach(who, "failed", timeout_s=20)
        assert failed.error is not None
        assert failed.error.code == "silent"

        async def removed() -> bool:
            return await at.spawner.chosen.runtime.instances(who) == []

        await until(removed, what="its removal")


async def test_wake_is_joined_when_one_tenant_is_wanted_by_eight(home: House) -> None:
    who = tenant()
    async with home.work() as at:
        for _ in range(3):
            await asyncio.gather(*(at.client.wake(who, "page") for _ in range(8)))
            await at.reach(who, "ready")
            await at.client.stop(who)
            await at.reach(who, "stopped")
        assert [line.split()[0] for line in home.starts(who)] == ["1", "2", "3"]


async def test_orphans_are_removed_when_no_row_stands_for_them(home: House) -> None:
    mine, foreign = tenant(), tenant()
    async with home.work(stop_on_exit=False) as at:
        await at.ready(mine)
        await at.ready(foreign)
        pid = at.pid(foreign)
    (home.root / "spawner.db").unlink()
    await home.migrate()
    async with home.work(orphan_grace_s=0) as at:
        await until(lambda: gone(pid), what="the orphan's end")
        assert (await at.client.instance(foreign)).state == "absent"
        assert not (home.root / "s" / "t" / foreign).exists()
        assert (home.data(foreign) / "starts.log").exists()


async def test_orphans_are_left_alone_while_they_are_young(home: House) -> None:
    who = tenant()
    async with home.work(stop_on_exit=False) as at:
        await at.ready(who)
        pid = at.pid(who)
    (home.root / "spawner.db").unlink()
    await home.migrate()
    async with home.work(orphan_grace_s=60) as at:
        await at.spawner.supervise()
        assert not gone(pid)
        assert (await at.ready(who)).generation == 1
        assert gone(pid)


async def test_agent_is_started_anew_when_it_was_stopped_from_outside_while_a_person_waits(
    home: House,
) -> None:
    who = tenant()
    async with home.work() as at:
        await at.ready(who)
        await at.client.person_was_here(who, 1 << 52)
        os.kill(at.pid(who), signal.SIGTERM)  # as an engine does that is restarted: it exits with 0

        async def again() -> bool:
            now = await at.client.instance(who)
            return (now.state, now.generation) == ("ready", 2)

        await until(again, what="the second generation")
        assert (await at.client.instance(who)).error is None


async def test_agent_stays_asleep_when_it_was_stopped_from_outside_and_nobody_waits(
    home: House,
) -> None:
    who = tenant()
    async with home.work() as at:
        await at.ready(who)
        os.kill(at.pid(who), signal.SIGTERM)
        assert (await at.reach(who, "stopped")).generation == 1
        await at.spawner.supervise()
        assert (await at.client.instance(who)).phase == "stopped"
