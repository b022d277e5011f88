"""Starts that fail for everybody: nothing begins for a while, everybody hears of it, one probe tries first."""

import json
import sqlite3
from contextlib import closing

import pytest

from infra.kit.client import session
from infra.kit.clock import FakeClock
from infra.kit.errors import AlcoveError
from spawner import wire
from spawner.breaker import ALL_FAILURES, FIRST_PAUSE_S, LONGEST_PAUSE_S, MACHINE_FAILURES, Breaker
from spawner.metrics import SpawnerMetrics
from spawner.runtimes import Spec
from spawner.runtimes.process import ProcessRuntime
from tests.spawner.house import SECRET, House, Working, tenant
from tests.waiting import until

pytestmark = pytest.mark.thorough

ENGINE = wire.Problem(code="engine", message="the container engine does not answer")
DIED = wire.Problem(code="agent_died", message="the agent ended (exit code 3)")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def breaker(clock: FakeClock) -> Breaker:
    return Breaker(clock, SpawnerMetrics())


def fail(breaker: Breaker, times: int, problem: wire.Problem = ENGINE) -> None:
    """So many failures in a row, each of another tenant."""
    phase: wire.Phase = "create" if problem is ENGINE else "answering"
    for n in range(times):
        breaker.failed(f"tenant {n}", phase, problem)


def free(breaker: Breaker, under_way: int = 0) -> int:
    return breaker.places(4, under_way=under_way)


def test_starts_pause_when_the_machine_failed_different_tenants_in_a_row(
    breaker: Breaker, clock: FakeClock
) -> None:
    fail(breaker, MACHINE_FAILURES - 1)
    assert (free(breaker), breaker.paused(), breaker.refusal()) == (4, None, None)
    fail(breaker, MACHINE_FAILURES)
    assert free(breaker) == 0
    refusal = breaker.refusal()
    assert refusal is not None
    assert (refusal.code, refusal.reason) == ("unavailable", "starts_paused")
    assert refusal.details["retry_after_s"] == FIRST_PAUSE_S
    assert ENGINE.message in str(breaker.paused())
    clock.advance(FIRST_PAUSE_S)
    assert (free(breaker), free(breaker, under_way=1)) == (1, 0)


def test_pause_ends_when_the_probe_works_and_doubles_when_it_fails(
    breaker: Breaker, clock: FakeClock
) -> None:
    fail(breaker, MACHINE_FAILURES)
    pause_s = FIRST_PAUSE_S
    for _ in range(8):
        clock.advance(pause_s)
        assert free(breaker) == 1
        breaker.failed("tenant 0", "create", ENGINE)
        pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)
        clock.advance(pause_s - 1)
        assert free(breaker) == 0
        clock.advance(1)
        assert free(breaker) == 1
        clock.advance(-pause_s)
    clock.advance(pause_s)
    breaker.worked()
    assert (free(breaker), breaker.paused()) == (4, None)
    fail(breaker, MACHINE_FAILURES - 1)
    assert free(breaker) == 4


def test_nothing_pauses_when_one_tenant_or_few_agents_fail(breaker: Breaker) -> None:
    for _ in range(3 * ALL_FAILURES):
        breaker.failed("one", "create", ENGINE)
    fail(breaker, ALL_FAILURES - 2, DIED)
    breaker.failed("x", "key", wire.Problem(code="suspended", message="the account is suspended"))
    assert free(breaker) == 4


def test_starts_pause_when_every_agent_dies_and_a_dying_probe_keeps_them_paused(
    breaker: Breaker, clock: FakeClock
) -> None:
    fail(breaker, ALL_FAILURES, DIED)
    assert free(breaker) == 0
    clock.advance(FIRST_PAUSE_S)
    breaker.failed("late", "answering", DIED)
    assert free(breaker) == 0


def test_a_dying_agent_proves_the_machine_when_the_machine_had_failed(
    breaker: Breaker, clock: FakeClock
) -> None:
    fail(breaker, MACHINE_FAILURES)
    breaker.failed("began before", "create", ENGINE)
    clock.advance(FIRST_PAUSE_S)
    breaker.failed("probe", "answering", DIED)
    assert (free(breaker), breaker.paused()) == (4, None)


class Broken(ProcessRuntime):
    """An engine that can make nothing, until it is told to work again; counts what it is asked."""

    broken, asked = True, 0

    async def create(self, spec: Spec) -> None:
        type(self).asked += 1
        if self.broken:
            raise AlcoveError(
                "unavailable", "the container engine does not answer", reason="engine"
            )
        await super().create(spec)


async def readiness(home: House) -> tuple[int, dict[str, object], str]:
    """Status and answer of /readyz, and the metric of the pause."""
    client, base = session(f"unix://{home.root}/control/spawner.sock")
    async with client:
        async with client.get(f"{base}/readyz") as found:
            status, told = found.status, json.loads(await found.read())
        headers = {"authorization": f"Bearer {SECRET}"}
        async with client.get(f"{base}/metrics", headers=headers) as found:
            text = await found.text()
    [line] = [line for line in text.splitlines() if line.startswith("spawner_starts_paused ")]
    return status, told, line.split()[1]


async def paused(at: Working) -> None:
    """Wakes as many tenants as it takes."""
    for who in [tenant() for _ in range(MACHINE_FAILURES)]:
        await at.client.wake(who, "message")
        await at.reach(who, "failed")
        await at.spawner.drivers.settled(who)


async def test_everybody_hears_of_it_and_is_served_when_starts_were_paused(home: House) -> None:
    Broken.broken, Broken.asked, clock = True, 0, FakeClock()
    patient = [tenant() for _ in range(3)]
    async with home.work(clock=clock, runtime_class=Broken, poll_s=3600) as at:
        await paused(at)
        for who in patient:
            with pytest.raises(AlcoveError) as refused:
                await at.client.wake(who, "message")
            assert (refused.value.code, refused.value.reason) == ("unavailable", "starts_paused")
            assert refused.value.details["retry_after_s"] == FIRST_PAUSE_S
        status, told, gauge = await readiness(home)
        assert (status, gauge) == (503, "1.0")
        assert "starts are paused" in str(told["reasons"])
        assert Broken.asked == MACHINE_FAILURES
        waiting = await at.client.instance(patient[0])
        assert (waiting.state, waiting.phase) == ("absent", "queued")
        said = (await at.spawner.journal.after(patient[0], 0))[-1].message
        assert "nothing is lost" in said

        clock.advance(FIRST_PAUSE_S)
        at.spawner.nudge()
        await until(lambda: Broken.asked == MACHINE_FAILURES + 1, what="one probe")
        probe = await until(lambda: failed_now(home, patient), what="the probe's end")
        await at.spawner.drivers.settled(probe)
        assert Broken.asked == MACHINE_FAILURES + 1

        Broken.broken = False
        clock.advance(2 * FIRST_PAUSE_S)
        at.spawner.nudge()
        for who in patient:
            if who != probe:
                await at.reach(who, "ready")
        assert (await readiness(home))[::2] == (200, "0.0")


def failed_now(home: House, among: list[str]) -> str:
    """Who of these failed; empty: nobody."""
    with closing(sqlite3.connect(home.root / "spawner.db")) as connection:
        found = connection.execute("SELECT tenant FROM instance WHERE state = 'failed'").fetchall()
    return next((who for (who,) in found if who in among), "")


async def test_ready_instance_is_untouched_when_starts_are_paused(home: House) -> None:
    Broken.broken, who = False, tenant()
    async with home.work(runtime_class=Broken) as at:
        first = await at.ready(who)
        Broken.broken = True
        await paused(at)
        answer = await at.client.wake(who, "message")
        assert (answer.state, answer.generation) == ("ready", first.generation)
