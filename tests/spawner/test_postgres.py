"""The same on PostgreSQL, where transactions really run side by side."""

import asyncio
from pathlib import Path

import pytest

from tests.spawner.house import House, house, tenant
from tests.waiting import until

pytestmark = pytest.mark.postgres


async def test_no_place_is_taken_twice_when_many_ask_at_once(
    tmp_path: Path, deployment: str, postgres_url: str, spawner_database: Path
) -> None:
    tenants = [tenant() for _ in range(9)]
    async with house(tmp_path, deployment, spawner_database) as home:
        home.database_url = postgres_url
        await home.migrate()
        home.kind = "slow"
        async with home.work(concurrent_starts=2) as at:
            asks = [at.client.wake(who, "message") for who in tenants for _ in range(4)]
            await asyncio.gather(*asks)
            most = 0

            async def all_ready() -> bool:
                nonlocal most
                states = [row.state for row in (await at.client.query(ids=tenants)).rows]
                most = max(most, states.count("creating") + states.count("starting"))
                return states.count("ready") == len(tenants)

            await until(all_ready, timeout_s=60, what="everybody")
            assert most == 2
        assert [len(home.starts(who)) for who in tenants] == [1] * len(tenants)
        await _nobody_left(home, tenants)


async def _nobody_left(home: House, tenants: list[str]) -> None:
    async with home.work() as at:
        page = await at.client.query(ids=tenants)
        assert {row.state for row in page.rows} == {"stopped"}
        assert home.meter.keys == {}
