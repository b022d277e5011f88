"""Periodic jobs: one holder at a time, and a failure is neither silent nor the end."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import MetaData

from infra.kit.clock import FakeClock
from infra.kit.db import Database
from infra.kit.jobs import Job, Jobs, lease_table
from infra.kit.metrics import Metrics
from tests.waiting import until

METADATA = MetaData()
LEASE = lease_table(METADATA)


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Database]:
    db = Database(f"sqlite:///{tmp_path}/jobs.db", clock=clock)
    async with db.engine.begin() as connection:
        await connection.run_sync(METADATA.create_all)
    yield db
    await db.close()


def supervisor(db: Database, *jobs: Job) -> Jobs:
    return Jobs(db, LEASE, Metrics("test"), list(jobs))


class Counting:
    def __init__(self) -> None:
        self.runs = 0

    async def __call__(self) -> None:
        self.runs += 1


async def test_job_runs_in_one_process_when_two_hold_the_list(
    store: Database, clock: FakeClock
) -> None:
    work = Counting()
    job = Job("sweep", 60, work)
    first, second = supervisor(store, job), supervisor(store, job)
    assert await first.once(job)
    assert not await second.once(job)
    assert await first.once(job)
    assert work.runs == 2


async def test_job_moves_when_the_clock_was_set_back_since_its_holder_took_it(
    store: Database, clock: FakeClock
) -> None:
    job = Job("sweep", 60, Counting())
    first, second = supervisor(store, job), supervisor(store, job)
    assert await first.once(job)
    clock.jump(-3600)
    assert await second.once(job)
    assert not await first.once(job)


async def test_job_moves_when_its_holder_is_gone(store: Database, clock: FakeClock) -> None:
    job = Job("sweep", 60, Counting())
    first, second = supervisor(store, job), supervisor(store, job)
    assert await first.once(job)
    clock.advance(170)
    assert not await second.once(job)
    clock.advance(20)
    assert await second.once(job)
    assert not await first.once(job)


async def test_job_runs_in_each_process_when_it_is_for_everywhere(store: Database) -> None:
    work = Counting()
    job = Job("local", 60, work, everywhere=True)
    assert await supervisor(store, job).once(job)
    assert await supervisor(store, job).once(job)
    assert work.runs == 2


async def test_job_runs_again_when_it_raised(
    store: Database, caplog: pytest.LogCaptureFixture
) -> None:
    runs = 0

    async def breaks_once() -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            raise RuntimeError("first time")

    job = Job("fragile", 0.01, breaks_once)
    metrics = Metrics("test")
    jobs = Jobs(store, LEASE, metrics, [job])
    jobs.start()
    await until(lambda: runs >= 3)
    await jobs.stop()
    assert "job failed" in caplog.text
    assert metrics.registry.get_sample_value(
        "test_job_runs_total", {"job": "fragile", "outcome": "failed"}
    ) == pytest.approx(1)


async def test_stop_ends_a_job_when_it_hangs(store: Database) -> None:
    started = asyncio.Event()

    async def hangs() -> None:
        started.set()
        await asyncio.Event().wait()

    jobs = supervisor(store, Job("hangs", 1, hangs))
    jobs.start()
    await started.wait()
    async with asyncio.timeout(2):
        await jobs.stop()
