"""Four meters in four processes, one database, one tenant at the edge of its limit: it holds, to the nano."""

import asyncio
import contextlib
import os
import shutil
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from infra.kit import client as kit_client
from infra.kit import ids, migrate
from infra.kit.db import Database, sql
from metering_proxy import wire
from metering_proxy.client import MeterClient
from metering_proxy.ledger.verify import verify
from tests import scripted as s
from tests.metering_proxy.house import MODEL, ROW, SECRET, Tenant
from tests.scripted import ScriptedProvider
from tests.waiting import until

_PROCESSES, _CALLS = 4, 200
_PLANS = """
[[plan]]
name = "free"
title = "Free"
charge_month = "0.05"
tokens_day = 60_000
concurrent = 30
"""
pytestmark = pytest.mark.thorough


@contextlib.asynccontextmanager
async def _meter(root: Path, url: str) -> AsyncIterator[MeterClient]:
    """A meter in a process of its own, with its own sockets, while the block runs."""
    root.mkdir()
    environment = {
        **os.environ,
        "ALCOVE_DEPLOYMENT": "test",
        "ALCOVE_SERVICE_SECRET": SECRET,
        "ALCOVE_SEALING_KEY": "5a" * 32,
        "ALCOVE_METER_DATABASE_URL": url,
        "ALCOVE_METER_LISTEN": f"unix://{root}/c.sock",
        "ALCOVE_METER_LOOPBACK_PROVIDERS": ",",
        "ALCOVE_METER_PLANS_FILE": str(root.parent / "plans.toml"),
        "ALCOVE_SOCKETS_DIR": str(root / "s"),
    }
    with (root / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "metering_proxy", env=environment, stdout=log, stderr=log
        )
    client = MeterClient(f"unix://{root}/c.sock", SECRET)
    try:
        await until(lambda: (root / "c.sock").exists() or process.returncode, timeout_s=60)
        assert process.returncode is None, (root / "log").read_text()
        yield client
    finally:
        await client.close()
        if process.returncode is None:
            process.terminate()
        await process.wait()


@pytest.fixture
async def meters(
    tmp_path: Path, database_url: str, migrated: Path
) -> AsyncIterator[tuple[Path, list[MeterClient]]]:
    """Four processes on one migrated database."""
    (tmp_path / "plans.toml").write_text(_PLANS)
    if database_url.startswith("sqlite"):
        shutil.copy(migrated, tmp_path / "test.db")
    else:
        db = Database(database_url)
        await migrate.upgrade(db, "metering_proxy")
        await db.close()
    async with contextlib.AsyncExitStack() as stack:
        started = [
            stack.enter_async_context(_meter(tmp_path / str(n), database_url))
            for n in range(_PROCESSES)
        ]
        yield tmp_path, await asyncio.gather(*started)


async def _doors(
    root: Path, clients: list[MeterClient], stack: contextlib.AsyncExitStack
) -> list[Tenant]:
    """One tenant's door in every process: a generation each, as while one drains and the next begins."""
    tenant, doors = ids.tenant_id(), []
    for n, client in enumerate(clients):
        directory = root / str(n) / "s" / "t" / tenant / str(n + 1) / "meter"
        directory.mkdir(parents=True)
        minted = await client.mint_key(tenant, n + 1, str(directory))
        session, _ = kit_client.session(f"unix://{directory}/meter.sock")
        await stack.enter_async_context(session)
        doors.append(Tenant(tenant, n + 1, minted.key, directory / "meter.sock", session))
    return doors


async def test_two_hundred_calls_over_four_processes_settle_within_every_limit(
    meters: tuple[Path, list[MeterClient]], database_url: str, scripted: ScriptedProvider
) -> None:
    root, clients = meters
    # Each answer is as long as it may be, so that what is charged is all but what was held.
    scripted.always(reply=lambda request: s.text("x").using(40, request.json["max_tokens"]))
    new = wire.NewProvider(
        kind="openai_compatible", name="Scripted", base_url=scripted.url, key="sk-1", models=[ROW]
    )
    await clients[0].create_provider(new)
    for client in clients:

        async def knows(client: MeterClient = client) -> bool:
            return [model.id for model in await client.models()] == [f"scripted/{MODEL}"]

        await until(knows, timeout_s=5)
    async with contextlib.AsyncExitStack() as stack:
        doors = await _doors(root, clients, stack)
        statuses: Counter[int] = Counter()

        async def caller(door: Tenant, calls: int) -> None:
            for _ in range(calls):
                statuses[(await door.chat(max_tokens=1_000)).status] += 1

        each = _CALLS // _PROCESSES // 10
        await asyncio.gather(*(caller(door, each) for door in doors for _ in range(10)))
    assert set(statuses) <= {200, 402, 429}
    assert statuses[200] == len(scripted.model_requests)
    assert statuses[402] > 0
    db = Database(database_url)
    try:
        verdict, windows = await _settled(db)
    finally:
        await db.close()
    assert verdict
    assert 50_000_000 - 700_000 < windows["charge_month"] <= 50_000_000
    assert windows["tokens_day"] <= 60_000


async def _settled(db: Database) -> tuple[bool, dict[str, int]]:
    """Whether the ledger is whole once nothing is held, and what its windows have spent."""

    async def nothing_held() -> bool:
        async with db.read() as reading:
            return await reading.value(sql("SELECT SUM(held) FROM account_window")) == 0

    await until(nothing_held)
    async with db.read() as reading:
        rows = await reading.rows(sql("SELECT kind, spent FROM account_window"))
    return (await verify(db)).whole, {row["kind"]: int(row["spent"]) for row in rows}
