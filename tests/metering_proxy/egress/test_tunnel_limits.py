"""Who may open tunnels, how many, and what passes through them in a day."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from infra.kit.clock import FakeClock
from infra.kit.db import sql
from metering_proxy import wire
from tests.metering_proxy.egress.outdoors import (
    STAND_IN,
    Names,
    Server,
    allowed,
    connecting,
    opened,
    plans_file,
    refused,
    world,
)
from tests.metering_proxy.house import House, Tenant, a_house
from tests.waiting import until


@pytest.mark.parametrize(
    ("plan", "egress", "reason"), [("free", False, "egress_off"), ("inside", True, "egress_plan")]
)
async def test_way_out_is_closed_until_plan_and_gateway_open_it(
    open_house: House, names: Names, server: Server, plan: str, egress: bool, reason: str
) -> None:
    names.say("a.example", [STAND_IN])
    unheard = await open_house.tenant()
    decided = await allowed(open_house, plan, egress=egress)
    for tenant, why in ((decided, reason), (unheard, "egress_off")):
        async with connecting(tenant, f"a.example:{server.port}") as client:
            await refused(client, 403, why)
    assert names.asked == []


async def test_way_out_needs_the_tenants_own_key(open_house: House, server: Server) -> None:
    tenant, stranger = await allowed(open_house), await allowed(open_house)
    for key, reason in (("", "no_key"), ("alcove-wrong", "key"), (stranger.key, "key")):
        async with connecting(tenant, f"{STAND_IN}:{server.port}", key) as client:
            await refused(client, 401, reason)
    assert server.connections == 0
    assert len(await open_house.rows("SELECT * FROM audit WHERE what = 'stranger_key'")) == 1


async def test_suspended_tenant_goes_nowhere(open_house: House, server: Server) -> None:
    tenant = await allowed(open_house)
    state = wire.TenantState(plan="free", status="suspended", version=3, egress=True)
    await open_house.client.put_tenant(tenant.id, state)
    async with connecting(tenant, f"{STAND_IN}:{server.port}") as client:
        await refused(client, 403, "suspended")
    assert server.connections == 0


async def test_ninth_tunnel_is_refused_until_one_ends(open_house: House, server: Server) -> None:
    tenant, neighbour = await allowed(open_house), await allowed(open_house)
    target = f"{STAND_IN}:{server.port}"
    async with asyncio.TaskGroup() as group:
        done = asyncio.Event()
        held: list[int] = []

        async def hold() -> None:
            async with connecting(tenant, target) as client:
                await opened(client)
                held.append(1)
                await done.wait()

        for _ in range(8):
            group.create_task(hold())
        await until(lambda: len(held) == 8)
        async with connecting(tenant, target) as client:
            await refused(client, 429, "egress_at_once")
        async with connecting(neighbour, target) as client:
            await opened(client)
        done.set()

    async def again() -> bool:
        async with connecting(tenant, target) as client:
            return (await client.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")

    assert await until(again)


async def test_bytes_of_both_directions_are_counted(open_house: House, server: Server) -> None:
    tenant = await allowed(open_house)
    async with connecting(tenant, f"{STAND_IN}:{server.port}") as client:
        await opened(client)
        client.send(bytes(300_000))
        await client.reader.readexactly(300_000)
        client.writer.write_eof()
        assert await client.reader.read() == b""

    async def counted_up() -> bool:
        return (await open_house.client.egress_day(tenant.id)).bytes == 600_000

    await until(counted_up)
    day = await open_house.client.egress_day(tenant.id)
    assert (day.allowed, day.tunnels, day.calls, day.bytes_limit) == (True, 1, 0, None)
    registry = open_house.meter.metrics.registry
    for direction in ("up", "down"):
        labels = {"direction": direction}
        assert registry.get_sample_value("meter_egress_bytes_total", labels) == 300_000
    labels = {"kind": "tunnel", "ending": "closed"}
    assert registry.get_sample_value("meter_egress_ways_total", labels) == 1


async def test_tunnel_is_cut_and_the_next_refused_when_the_day_is_used_up(
    tmp_path: Path, names: Names, server: Server, clock: FakeClock
) -> None:
    plans = plans_file(tmp_path, server.port, bytes_day="500_000")
    async with a_house(
        tmp_path,
        f"sqlite:///{tmp_path}/m.db",
        clock=clock,
        outside=world(names),
        plans_file=plans,
    ) as house:
        tenant, target = await allowed(house), f"{STAND_IN}:{server.port}"
        async with connecting(tenant, target) as client:
            await opened(client)
            client.send(bytes(400_000))
            received = 0
            try:
                while data := await client.reader.read(65_536):
                    received += len(data)
            except ConnectionError:
                pass
            assert received < 400_000

        await until(lambda: not house.meter.egress.open)
        day = await house.client.egress_day(tenant.id)
        assert 500_000 - 2 * 256 * 1024 < day.bytes <= 500_000
        async with house.db.transaction() as tx:
            await tx.execute(sql("UPDATE egress_day SET bytes = 500000"))
        async with connecting(tenant, target) as client:
            await refused(client, 429, "egress_bytes_day")
        clock.advance(86_400)
        async with connecting(tenant, target) as client:
            await opened(client)


async def test_tunnel_ends_with_the_key_of_its_generation(
    open_house: House, server: Server
) -> None:
    tenant = await allowed(open_house)
    async with connecting(tenant, f"{STAND_IN}:{server.port}") as client:
        await opened(client)
        await open_house.client.delete_key(tenant.id, 1)
        assert await client.ended()
    await until(lambda: not open_house.meter.egress.open)


@pytest.mark.parametrize(
    "now", [{"status": "suspended"}, {"egress": False}, {"plan": "inside"}], ids=str
)
async def test_open_tunnel_is_cut_at_the_next_byte_when_it_would_be_opened_no_more(
    open_house: House, server: Server, now: dict[str, Any]
) -> None:
    tenant = await allowed(open_house)
    async with connecting(tenant, f"{STAND_IN}:{server.port}") as client:
        await opened(client)
        client.send(b"one")
        assert await client.reader.readexactly(3) == b"one"
        state = {"plan": "free", "status": "active", "version": 3, "egress": True, **now}
        await open_house.client.put_tenant(tenant.id, wire.TenantState.model_validate(state))
        client.send(b"two")
        assert await client.ended()
    await until(lambda: open_house.meter.egress.open == 0)


async def test_get_of_a_host_is_no_way_out(open_house: House, server: Server) -> None:
    tenant: Tenant = await allowed(open_house)
    answer = await tenant.post(f"/http://{STAND_IN}:{server.port}/", {})
    assert (answer.status, answer.headers["x-alcove-reason"]) == (404, "no_such_path")
    assert server.connections == 0
