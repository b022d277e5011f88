"""The spawner's client against the real spawner (its agents are stand-ins) and against the gateway's fake."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from infra.kit import ids, service
from infra.kit.errors import AlcoveError
from spawner.client import SpawnerClient
from tests.gateway.fake_spawner import FakeSpawner
from tests.spawner.house import SECRET, house
from tests.waiting import until

pytestmark = pytest.mark.thorough


@pytest.fixture(params=["real", "fake"])
async def spawner(
    request: pytest.FixtureRequest, tmp_path: Path, deployment: str, spawner_database: Path
) -> AsyncIterator[SpawnerClient]:
    if request.param == "real":
        async with (
            house(tmp_path, deployment, spawner_database) as home,
            home.work() as working,
        ):
            yield working.client
        return
    fake = FakeSpawner(tmp_path, SECRET, SECRET[::-1])
    async with service.serving(fake.app, f"unix://{tmp_path}/s.sock", grace_s=1) as url:
        client = SpawnerClient(url, SECRET)
        yield client
        await client.close()
        await fake.close()


async def reach(spawner: SpawnerClient, tenant: str, state: str) -> None:
    async def there() -> bool:
        return (await spawner.instance(tenant)).state == state

    await until(there, what=f"state {state}")


async def test_instance_is_absent_when_nobody_has_asked_for_it(spawner: SpawnerClient) -> None:
    found = await spawner.instance(ids.tenant_id())
    assert (found.state, found.generation, found.url) == ("absent", 0, None)


async def test_instance_gets_ready_and_says_where_when_woken(spawner: SpawnerClient) -> None:
    tenant = ids.tenant_id()
    asked = await spawner.wake(tenant, "message")
    assert asked.state in ("creating", "starting", "ready")
    await reach(spawner, tenant, "ready")
    found = await spawner.instance(tenant)
    assert found.generation == 1
    assert found.url is not None
    assert found.url.endswith(f"/t/{tenant}/1/agent/agent.sock")
    assert found.owner_uid is not None
    assert (await spawner.wake(tenant, "page")).generation == 1


async def test_leave_to_clear_is_no_news_when_there_is_room(spawner: SpawnerClient) -> None:
    found = await spawner.clear(ids.tenant_id())
    assert (found.state, found.clearing_until_at) == ("absent", None)
    assert found.storage_bytes


async def test_phases_are_told_again_when_a_listener_comes_late(spawner: SpawnerClient) -> None:
    tenant = ids.tenant_id()
    await spawner.wake(tenant, "message")
    await reach(spawner, tenant, "ready")
    seen = []
    async for event in spawner.events(tenant):
        seen.append(event)
        if event.phase == "ready":
            break
    assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
    assert {event.generation for event in seen} == {1}
    assert seen[-1].state == "ready"
    async for event in spawner.events(tenant, after=seen[-2].seq):
        assert event == seen[-1]
        break


async def test_instance_stops_and_keeps_its_number_when_told_to(spawner: SpawnerClient) -> None:
    tenant = ids.tenant_id()
    await spawner.wake(tenant, "message")
    await reach(spawner, tenant, "ready")
    assert (await spawner.stop(tenant)).state in ("stopping", "stopped")
    await reach(spawner, tenant, "stopped")
    found = await spawner.instance(tenant)
    assert (found.url, found.generation) == (None, 1)
    await spawner.wake(tenant, "admin")
    await reach(spawner, tenant, "ready")
    assert (await spawner.instance(tenant)).generation == 2


async def test_start_is_refused_when_suspended_and_not_when_resumed(spawner: SpawnerClient) -> None:
    tenant = ids.tenant_id()
    assert (await spawner.suspend(tenant)).suspended
    with pytest.raises(AlcoveError) as caught:
        await spawner.wake(tenant, "message")
    assert (caught.value.code, caught.value.reason) == ("forbidden", "suspended")
    assert not (await spawner.resume(tenant)).suspended
    await spawner.wake(tenant, "message")
    await reach(spawner, tenant, "ready")


async def test_query_holds_the_ids_asked_for_when_some_never_started(
    spawner: SpawnerClient,
) -> None:
    known, unknown = ids.tenant_id(), ids.tenant_id()
    await spawner.wake(known, "message")
    await reach(spawner, known, "ready")
    page = await spawner.query(ids=[known, unknown])
    assert {row.tenant: row.state for row in page.rows} == {known: "ready", unknown: "absent"}
    assert page.total == 2
    only = await spawner.query(ids=[known, unknown], state="ready")
    assert ([row.tenant for row in only.rows], only.total) == ([known], 1)
    assert (await spawner.query(ids=[known, unknown], limit=1)).total == 2


async def test_plan_and_activity_are_taken_when_reported(spawner: SpawnerClient) -> None:
    tenant = ids.tenant_id()
    assert (await spawner.set_plan(tenant, "plus")).plan == "plus"
    await spawner.person_was_here(tenant, 1_767_225_600_000)
    assert (await spawner.host()).runtime == "process"


async def test_call_is_refused_when_the_secret_is_wrong(spawner: SpawnerClient) -> None:
    stranger = SpawnerClient(spawner._service._url, "wrong" * 8)
    with pytest.raises(AlcoveError) as caught:
        await stranger.instance(ids.tenant_id())
    await stranger.close()
    assert caught.value.code == "unauthorized"
