"""A wall clock that jumps by an hour: nobody falls asleep or stays awake for it, and nobody waits longer."""

import time

import pytest
from sqlalchemy import update

from infra.kit.clock import FakeClock
from infra.kit.db import Database
from spawner.jumps import Jumps
from spawner.models import instance
from tests.spawner.house import House, tenant

pytestmark = pytest.mark.thorough

HOUR_S = 3600


@pytest.mark.parametrize("seconds", [HOUR_S, -HOUR_S])
async def test_instance_sleeps_after_its_idle_time_when_the_clock_jumps(
    home: House, seconds: int
) -> None:
    who, clock = tenant(), FakeClock(time.time_ns() // 1_000_000)
    async with home.work(clock=clock, poll_s=HOUR_S) as at:
        await at.ready(who)
        await at.spawner.cull()
        clock.advance(500)
        clock.jump(seconds)
        await at.spawner.cull()
        await at.spawner.drivers.settled(who)
        assert (await at.client.instance(who)).state == "ready"
        clock.advance(390)
        await at.spawner.cull()
        assert (await at.client.instance(who)).state == "ready"
        clock.advance(20)
        await at.spawner.cull()
        await at.spawner.drivers.settled(who)
        assert (await at.client.instance(who)).state == "stopped"


@pytest.mark.parametrize("seconds", [HOUR_S, -HOUR_S])
async def test_person_who_came_after_the_jump_is_not_taken_for_one_before_it(
    home: House, seconds: int
) -> None:
    who, clock = tenant(), FakeClock(time.time_ns() // 1_000_000)
    async with home.work(clock=clock, poll_s=HOUR_S) as at:
        await at.ready(who)
        await at.spawner.cull()
        clock.jump(seconds)
        clock.advance(10)
        await at.spawner.ensure.person_was_here(who, clock.now_at())
        here_at = clock.now_at()
        await at.spawner.cull()
        assert (await at.client.instance(who)).last_activity_at == here_at


async def test_back_off_lasts_no_longer_when_the_clock_is_set_back(home: House) -> None:
    who, clock = tenant(), FakeClock(time.time_ns() // 1_000_000)
    home.kind = "dying"
    async with home.work(clock=clock, poll_s=HOUR_S) as at:
        for _ in range(2):
            await at.client.wake(who, "message")
            await at.reach(who, "failed")
            await at.spawner.drivers.settled(who)
        (home.data(who) / "kind").write_text("good")
        assert (await at.client.wake(who, "message")).phase == "queued"
        await at.spawner.supervise()
        clock.jump(-HOUR_S)
        clock.advance(3)
        await at.spawner.supervise()
        at.spawner.nudge()
        await at.reach(who, "ready")


async def test_back_off_is_bounded_when_the_clock_was_set_back_while_nobody_looked(
    home: House,
) -> None:
    who, clock = tenant(), FakeClock()
    async with home.work(stop_on_exit=False) as at:
        await at.client.stop(who)
    db = Database(home.database_url, clock=clock)
    async with db.transaction() as tx:
        later_at = clock.now_at() + HOUR_S * 1000
        await tx.execute(update(instance).values(retry_at=later_at, person_at=later_at))
    await Jumps(db, clock).follow()
    async with db.read() as reading:
        [row] = await reading.rows(instance.select())
    assert row["person_at"] == clock.now_at()
    assert row["retry_at"] == clock.now_at() + 300_000
    await db.close()
