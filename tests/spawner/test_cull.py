"""Going to sleep for idleness, staying awake for a reason that can be read, waking for a schedule."""

import json
import time

import pytest

from infra.kit.clock import FakeClock
from spawner.instances import Row, alive_because
from tests.spawner.house import House, Working, tenant
from tests.waiting import until

pytestmark = pytest.mark.thorough

IDLE_S = 900.0


def row(**more: object) -> Row:
    values: dict[str, object] = dict.fromkeys(Row.__dataclass_fields__)
    values |= {"state": "ready", "in_flight": 0, "started_at": 0, **more}
    return Row(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("known", "now_s", "why"),
    [
        ({}, 899, "it was started 14 min ago; it may sleep in 1 s"),
        ({}, 901, None),
        ({"person_at": 500_000}, 901, "a person was here 6 min ago; it may sleep in 8 min"),
        ({"person_at": 500_000}, 1401, None),
        ({"in_flight": 1}, 100_000, "a turn is running"),
        ({"busy_at": 2_000_000}, 2_100, "a turn was running 100 s ago; it may sleep in 13 min"),
        ({"busy_until_at": 5_000_000}, 4_990, "the agent asked for 10 s more"),
        ({"busy_until_at": 5_000_000}, 5_001, None),
        ({"next_schedule_at": 5_000_000}, 4_950, "a schedule is due"),
        ({"next_schedule_at": 5_000_000}, 4_000, None),
        ({"next_schedule_at": 5_000_000}, 6_000, None),
        ({"waiting": 2, "unread": 5}, 901, None),
    ],
)
def test_reason_to_stay_awake(known: dict[str, object], now_s: int, why: str | None) -> None:
    assert alive_because(row(**known), now_s * 1000, IDLE_S) == why


async def asleep_or_not(at: Working, who: str) -> str:
    await at.spawner.cull()
    await at.spawner.drivers.settled(who)
    return (await at.client.instance(who)).state


async def test_instance_sleeps_when_idle_longer_than_its_plan_allows(home: House) -> None:
    who, clock = tenant(), FakeClock(time.time_ns() // 1_000_000)
    async with home.work(clock=clock, poll_s=3600) as at:
        await at.ready(who)
        clock.advance(899)
        assert await asleep_or_not(at, who) == "ready"
        clock.advance(2)
        assert await asleep_or_not(at, who) == "stopped"
        told = [event.message for event in await at.spawner.journal.after(who, 0)]
        assert "Nobody needed it for 15 min; it is going to sleep" in told


async def test_instance_stays_when_a_person_was_there(home: House) -> None:
    who, clock = tenant(), FakeClock(time.time_ns() // 1_000_000)
    async with home.work(clock=clock, poll_s=3600) as at:
        await at.ready(who)
        clock.advance(800)
        await at.client.person_was_here(who, clock.now_at())
        await at.client.person_was_here(who, clock.now_at() - 700_000)  # older news
        clock.advance(800)
        assert await asleep_or_not(at, who) == "ready"
        clock.advance(101)
        assert await asleep_or_not(at, who) == "stopped"


async def test_instance_stays_when_a_turn_began_since_the_last_poll(home: House) -> None:
    who, clock = tenant(), FakeClock(time.time_ns() // 1_000_000)
    async with home.work(clock=clock, poll_s=3600) as at:
        await at.ready(who)
        clock.advance(2000)
        (home.data(who) / "status.json").write_text(json.dumps({"in_flight": 1}))
        assert await asleep_or_not(at, who) == "ready"
        (home.data(who) / "status.json").write_text("{}")
        await at.spawner.supervise()
        clock.advance(800)
        assert await asleep_or_not(at, who) == "ready"
        clock.advance(101)
        assert await asleep_or_not(at, who) == "stopped"


async def test_looking_never_counts_as_activity(home: House) -> None:
    who, clock = tenant(), FakeClock(time.time_ns() // 1_000_000)
    async with home.work(clock=clock, poll_s=3600) as at:
        await at.ready(who)
        for _ in range(10):
            clock.advance(91)
            await at.client.instance(who)
            await at.client.wake(who, "page")
            await at.client.query()
            await at.spawner.supervise()
        assert await asleep_or_not(at, who) == "stopped"


async def test_sleeper_wakes_when_its_schedule_comes_due(home: House) -> None:
    who, clock = tenant(), FakeClock(time.time_ns() // 1_000_000)
    due_at = clock.now_at() + 5_000_000
    (home.data(who) / "status.json").write_text(json.dumps({"next_schedule_at": due_at}))
    async with home.work(clock=clock, poll_s=3600) as at:
        await at.ready(who)
        clock.advance(1000)
        assert await asleep_or_not(at, who) == "stopped"
        await at.spawner.schedules()
        assert (await at.client.instance(who)).state == "stopped"
        clock.advance(3996)
        (home.data(who) / "status.json").write_text("{}")
        await at.spawner.schedules()
        assert (await at.reach(who, "ready")).generation == 2
        await at.spawner.supervise()
        assert (await at.client.instance(who)).next_schedule_at is None


async def test_only_the_hung_one_stays_when_many_are_idle(home: House) -> None:
    quick, hung = [tenant() for _ in range(4)], tenant()
    (home.data(hung) / "kind").write_text("stubborn")
    async with home.work(idle_s=0.5, stop_grace_s=2.0) as at:
        for who in [hung, *quick]:
            await at.client.wake(who, "message")
        await until(lambda: len(home.starts(hung)) == 1, what="the hung one's start")

        async def states() -> dict[str, str]:
            page = await at.client.query(ids=[hung, *quick])
            return {one.tenant: one.state for one in page.rows}

        async def quick_asleep() -> bool:
            now = await states()
            return all(now[who] == "stopped" for who in quick)

        await until(quick_asleep, what="the others asleep")
        assert (await states())[hung] in ("ready", "stopping")
        await at.reach(hung, "stopped")
