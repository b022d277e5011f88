"""Several meters on one database: what one of them is told the others know within a second."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from infra.kit import ids
from infra.kit.db import Database, sql
from metering_proxy import changes, wire
from tests import scripted as s
from tests.metering_proxy.house import House, Tenant, a_house
from tests.scripted import ScriptedProvider
from tests.waiting import until

pytestmark = pytest.mark.thorough

# Others look so often that they know within a second; a busy machine may take longer to answer the test.
assert changes.EVERY_S <= 0.5
_SOON_S = 5.0


@pytest.fixture
def roots(tmp_path: Path) -> Iterator[list[Path]]:
    """A directory for each of two meters."""
    made = [tmp_path / "1", tmp_path / "2"]
    for root in made:
        root.mkdir()
    yield made


@pytest.fixture
async def two(roots: list[Path], database_url: str) -> AsyncIterator[tuple[House, House]]:
    """Two meters on one database, each with its own sockets."""
    async with contextlib.AsyncExitStack() as stack:
        first = await stack.enter_async_context(a_house(roots[0], database_url))
        second = await stack.enter_async_context(a_house(roots[1], database_url))
        yield first, second


async def _connected(two: tuple[House, House], scripted: ScriptedProvider) -> Tenant:
    """A tenant whose generation 1 talks to the second meter; the provider is connected at the first."""
    first, second = two
    scripted.always(reply=s.text("x").using(1, 1))
    tenant = await second.tenant()
    await first.connect(scripted)
    await until(lambda: second.meter.providers.connections, timeout_s=_SOON_S)
    return tenant


async def test_provider_connected_at_one_meter_answers_at_the_other(
    two: tuple[House, House], scripted: ScriptedProvider
) -> None:
    tenant = await _connected(two, scripted)
    assert (await tenant.chat()).status == 200
    await two[0].client.change_provider("scripted", wire.ProviderChange(enabled=False))

    async def refused() -> bool:
        return (await tenant.chat()).status == 503

    await until(refused, timeout_s=_SOON_S)


async def test_suspension_told_to_one_meter_holds_at_the_other(
    two: tuple[House, House], scripted: ScriptedProvider
) -> None:
    tenant = await _connected(two, scripted)
    state = wire.TenantState(plan="free", status="suspended", version=5)
    await two[0].client.put_tenant(tenant.id, state)

    async def refused() -> bool:
        return (await tenant.chat()).status == 403

    await until(refused, timeout_s=_SOON_S)


async def test_key_made_or_revoked_at_one_meter_is_known_at_the_other(
    two: tuple[House, House], scripted: ScriptedProvider
) -> None:
    tenant = await _connected(two, scripted)
    made = await two[0].client.create_api_key(tenant.id, wire.ApiKeyRequest(name="cli"))
    body = {"model": "default", "messages": [{"role": "user", "content": "hi"}]}

    async def status() -> int:
        return (await tenant.post("/v1/chat/completions", body, key=made.key)).status

    async def opened() -> bool:
        return await status() == 200

    async def closed() -> bool:
        return await status() == 401

    await until(opened, timeout_s=_SOON_S)
    await two[0].client.revoke_api_key(tenant.id, made.id)
    await until(closed, timeout_s=_SOON_S)


async def test_generation_ended_at_one_meter_loses_its_listener_at_the_other(
    two: tuple[House, House], scripted: ScriptedProvider
) -> None:
    tenant = await _connected(two, scripted)
    await two[0].client.delete_key(tenant.id, tenant.generation)
    await until(lambda: not tenant.socket.exists(), timeout_s=_SOON_S)
    assert two[1].meter.keys.find(tenant.key) is None


async def test_listener_stays_that_was_opened_while_keys_were_read(
    two: tuple[House, House], scripted: ScriptedProvider
) -> None:
    await _connected(two, scripted)
    house = two[1]
    listeners = house.meter.listeners
    before = listeners.opened
    tenant = await house.generation(ids.tenant_id(), 1)
    await listeners.keep(tenant.id, set(), before)
    assert tenant.socket.exists(), "its key may be newer than what was read"
    await listeners.keep(tenant.id, set(), listeners.opened)
    assert not tenant.socket.exists()


async def test_assistant_that_starts_while_a_key_is_made_keeps_its_socket(
    two: tuple[House, House], scripted: ScriptedProvider
) -> None:
    await _connected(two, scripted)
    house = two[1]
    for n in range(10):
        tenant = ids.tenant_id()
        await house.client.create_api_key(tenant, wire.ApiKeyRequest(name=f"key {n}"))
        following = asyncio.create_task(house.meter.changes.poll())
        made = await house.generation(tenant, 1)
        await following
        assert (await made.chat(model="default")).status == 200


async def test_own_key_set_at_one_meter_is_used_at_the_other(
    two: tuple[House, House], scripted: ScriptedProvider
) -> None:
    tenant = await _connected(two, scripted)
    await two[0].client.put_own_key(tenant.id, "scripted", "sk-own-key-of-the-tenant")

    await two[1].meter.changes.poll()
    assert (await tenant.chat()).status == 200
    [entry] = await two[1].entries(tenant)
    assert (entry["payer"], entry["charge_nanos"]) == ("tenant", 0)


async def test_meter_that_starts_leaves_the_sockets_of_another_alone(
    two: tuple[House, House], roots: list[Path], database_url: str, scripted: ScriptedProvider
) -> None:
    tenant = await _connected(two, scripted)
    third = roots[0].parent / "3"
    third.mkdir()
    async with a_house(third, database_url):
        assert (await tenant.chat()).status == 200
    assert (await tenant.chat()).status == 200


async def test_who_has_slept_while_notes_were_forgotten_reads_everything_anew(
    two: tuple[House, House],
) -> None:
    db = two[0].db
    seen: list[object] = []

    async def refresh(subjects: object) -> None:
        seen.append(subjects)

    sleeper = changes.Changes(db)
    sleeper.watch("tenant", refresh)
    await sleeper.begin()
    for subject in ("a", "b"):
        await _note(db, subject)
    await sleeper.poll()
    await sleeper.poll()
    assert seen == [{"a", "b"}]
    await _note(db, "c")
    async with db.transaction() as tx:
        await tx.execute(sql("DELETE FROM change"))
    await sleeper.poll()
    assert seen == [{"a", "b"}, None]


async def test_newer_reading_of_a_copy_waits_for_the_older_one(two: tuple[House, House]) -> None:
    db, known = two[0].db, list[str]()
    in_turn = changes.InTurn(db)

    async def newer() -> None:
        async with in_turn.read():
            known.append("newer")

    async with db.read(), db.read(), db.read():
        pass  # so that nobody waits for a connection
    async with in_turn.read():
        following = asyncio.create_task(newer())
        for _ in range(3):  # time enough for it, were it let in
            async with db.read() as reading:
                await reading.value(sql("SELECT 1"))
        known.append("older")
    await following
    assert known == ["older", "newer"]


async def _note(db: Database, subject: str) -> None:
    async with db.transaction() as tx:
        await changes.note(tx, "tenant", subject)
