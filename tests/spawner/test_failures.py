"""Starts that fail: the cause is named, nothing is left behind, and the next try waits."""

import os

import pytest

from infra.kit.errors import AlcoveError
from tests.missing import lacks
from tests.spawner.house import House, tenant
from tests.waiting import until

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("dying", "agent_died"),
        ("symlink", "untrusted_socket"),
        ("wrong_generation", "wrong_generation"),
        ("stranger", "untrusted_socket"),
    ],
)
async def test_start_fails_with_its_cause_when_the_agent_misbehaves(
    home: House, kind: str, code: str
) -> None:
    if kind == "stranger" and os.geteuid() != 0:
        lacks("a socket given away needs root", "run the tests as root")
    who = tenant()
    home.kind = kind
    async with home.work() as at:
        await at.client.wake(who, "message")
        failed = await at.reach(who, "failed")
        assert failed.error is not None
        assert failed.error.code == code
        assert home.meter.keys == {}
        assert await at.spawner.chosen.runtime.instances(who) == []
        last = (await at.spawner.journal.after(who, 0))[-1]
        assert last.error == failed.error


@pytest.mark.parametrize("kind", ["never", "endless"])
async def test_start_fails_in_time_when_the_agent_never_answers(home: House, kind: str) -> None:
    who = tenant()
    home.kind = kind
    async with home.work(start_timeout_s=1.0) as at:
        await at.client.wake(who, "message")
        failed = await at.reach(who, "failed")
        assert failed.error is not None
        assert failed.error.code == "timeout"
        assert "answering" in failed.error.message


async def test_start_fails_when_the_meter_refuses_and_succeeds_when_it_does_not(
    home: House,
) -> None:
    who = tenant()
    home.meter.refuse = AlcoveError("unavailable", "the meter rests")
    async with home.work() as at:
        await at.client.wake(who, "message")
        failed = await at.reach(who, "failed")
        assert failed.error is not None
        assert failed.error.message == "the meter rests"
        home.meter.refuse = None
        assert (await at.ready(who)).generation == 2
        await until(lambda: set(home.meter.keys) == {(who, 2)}, what="one living key")


async def test_next_start_waits_longer_each_time_when_starts_fail_in_a_row(home: House) -> None:
    who = tenant()
    home.kind = "dying"
    async with home.work() as at:
        for _ in range(2):
            await at.client.wake(who, "message")
            await at.reach(who, "failed")
            await at.spawner.drivers.settled(who)
        waiting = await at.client.wake(who, "message")
        assert (waiting.state, waiting.phase) == ("failed", "queued")
        assert waiting.retry_at is not None
        assert waiting.error is not None
        assert "2 times in a row" in (await at.spawner.journal.after(who, 0))[-1].message
        (home.data(who) / "kind").write_text("good")
        ready = await at.reach(who, "ready")
        assert ready.started_at is not None
        assert ready.started_at >= waiting.retry_at
