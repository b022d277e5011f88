"""What the gateway decided about tenants reaches the other rooms, whatever they were doing."""

from sqlalchemy import func, select

from gateway.models import tenant, tenant_change
from infra.kit.clock import FakeClock
from metering_proxy import wire
from tests.gateway.conftest import Gateway, Serve
from tests.waiting import until


async def _due(gateway: Gateway) -> int:
    async with gateway.parts.db.read() as reading:
        found: int = await reading.value(select(func.count()).select_from(tenant_change))
    return found


async def _nothing_is_due(gateway: Gateway) -> bool:
    return await _due(gateway) == 0


async def test_rooms_hear_of_a_new_tenant_when_they_come_back(gateway: Gateway) -> None:
    gateway.meter.away = gateway.spawner.away = True
    await gateway.person("ada@example.org")
    theirs = await gateway.tenant_of("ada@example.org")

    async def tried() -> bool:
        async with gateway.parts.db.read() as reading:
            return bool(await reading.value(select(func.sum(tenant_change.c.attempts))) >= 2)

    await until(tried)
    gateway.meter.away = gateway.spawner.away = False
    await until(lambda: _nothing_is_due(gateway))
    assert gateway.meter.tenants[theirs].version == 1
    assert f"plan {theirs} free" in gateway.spawner.calls


async def test_change_is_told_when_the_clock_was_set_back_since_it_failed(serve: Serve) -> None:
    clock = FakeClock()
    gateway = await serve(clock=clock, outbox_retry_s=60)
    gateway.meter.away = True
    await gateway.person("ada@example.org")
    theirs = await gateway.tenant_of("ada@example.org")
    await gateway.parts.outbox.push_due()
    clock.jump(-3600)
    gateway.meter.away = False
    await gateway.parts.outbox.push_due()
    assert gateway.meter.tenants[theirs].plan == "free"


async def test_one_room_away_does_not_hold_up_the_other(gateway: Gateway) -> None:
    gateway.meter.away = True
    await gateway.person("ada@example.org")
    theirs = await gateway.tenant_of("ada@example.org")
    await until(lambda: f"plan {theirs} free" in gateway.spawner.calls)
    assert theirs not in gateway.meter.tenants


async def test_change_survives_when_the_gateway_ends(serve: Serve) -> None:
    before = await serve(outbox_retry_s=3600)
    before.meter.away = True
    await before.person("ada@example.org")
    theirs = await before.tenant_of("ada@example.org")
    before.meter.away = False
    after = await serve()
    async with after.parts.db.transaction() as tx:
        await tx.execute(tenant_change.update().values(retry_at=0))
    await after.parts.outbox.push_due()
    assert after.meter.tenants[theirs].plan == "free"


async def test_comparison_mends_a_room_that_believes_otherwise(gateway: Gateway) -> None:
    await gateway.person("ada@example.org")
    theirs = await gateway.tenant_of("ada@example.org")
    await until(lambda: _nothing_is_due(gateway))
    gateway.meter.tenants[theirs] = wire.Tenant(
        tenant=theirs, plan="plus", status="active", version=9
    )
    gateway.spawner.of(theirs).plan = "plus"
    await gateway.parts.outbox.compare_all()
    await until(lambda: gateway.meter.tenants[theirs].plan == "free")
    await until(lambda: gateway.spawner.of(theirs).plan == "free")
    async with gateway.parts.db.read() as reading:
        assert await reading.value(select(tenant.c.version)) > 9
    await until(lambda: _nothing_is_due(gateway))


async def test_comparison_changes_nothing_when_all_agree(gateway: Gateway) -> None:
    await gateway.person("ada@example.org")
    await until(lambda: _nothing_is_due(gateway))
    await gateway.parts.outbox.compare_all()
    async with gateway.parts.db.read() as reading:
        assert await reading.value(select(tenant.c.version)) == 1
    assert await _due(gateway) == 0
