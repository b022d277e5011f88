"""The control listener over its real socket: who gets in, pages of instances, and streams that resume."""

import asyncio
from contextlib import aclosing

import pytest

from infra.kit.client import ServiceClient
from infra.kit.errors import AlcoveError
from spawner.client import SpawnerClient
from tests.spawner.house import SECRET, House, Working, tenant
from tests.waiting import until

pytestmark = pytest.mark.thorough


async def test_caller_is_refused_when_the_secret_is_wrong(home: House) -> None:
    async with home.work() as at:
        stranger = SpawnerClient(at.spawner.base.settings.listen, "x" * 40)
        for call in (
            stranger.wake(tenant(), "message"),
            stranger.host(),
            stranger.suspend(tenant()),
            stranger.query(),
        ):
            with pytest.raises(AlcoveError) as caught:
                await call
            assert caught.value.code == "unauthorized"
        await stranger.close()


@pytest.mark.parametrize("who", ["..", "A" * 16, "a" * 15, "a" * 15 + "%2f", "a" * 15 + "1"])
async def test_tenant_is_refused_when_it_is_no_id(home: House, who: str) -> None:
    async with home.work() as at:
        service = ServiceClient(at.spawner.base.settings.listen, SECRET, name="spawner")
        with pytest.raises(AlcoveError) as caught:
            await service.call("PUT", f"/instances/{who}", body={"reason": "message"})
        await service.close()
        assert caught.value.code in ("invalid", "not_found")
        assert (await at.client.query()).total == 0


async def test_ready_says_so_when_asked_for_health(home: House) -> None:
    async with home.work() as at:
        service = ServiceClient(at.spawner.base.settings.listen, SECRET, name="spawner")
        assert await service.call("GET", "/readyz") == {"status": "ok"}
        await at.ready(tenant())
        await service.close()

        def counted() -> bool:
            return b'spawner_instances{state="ready"} 1.0' in at.spawner.base.metrics.render()[0]

        await until(counted, what="the gauge")


async def stream(at: Working, who: str, after: int, until_phase: str) -> list[int]:
    seen = []
    async with aclosing(at.client.events(who, after)) as events:
        async for event in events:
            seen.append(event.seq)
            if event.phase == until_phase:
                break
    return seen


async def test_stream_resumes_without_loss_or_repetition_when_it_was_cut(home: House) -> None:
    who = tenant()
    async with home.work() as at:
        early = asyncio.create_task(stream(at, who, 0, "create"))
        await asyncio.sleep(0)
        await at.client.wake(who, "page")
        first = await early
        rest = await stream(at, who, first[-1], "ready")
        assert first + rest == list(range(1, 7))
        assert await stream(at, who, 0, "ready") == list(range(1, 7))


async def test_stream_goes_on_with_new_events_when_its_number_was_never_given(
    home: House,
) -> None:
    who = tenant()
    async with home.work() as at:
        await at.ready(who)
        late = asyncio.create_task(stream(at, who, 900, "stopped"))
        await until(lambda: at.spawner.journal.followers(who), what="the stream")
        await at.client.stop(who)
        assert await late == [7, 8]


async def test_nothing_is_held_when_a_stream_is_left(home: House) -> None:
    who = tenant()
    async with home.work() as at:
        await at.ready(who)
        for _ in range(5):
            await stream(at, who, 0, "ready")
        await until(lambda: not at.spawner.journal.followers(who), what="no follower left")


async def test_page_holds_those_never_started_when_ids_are_given(home: House) -> None:
    awake, asleep, never = tenant(), tenant(), tenant()
    async with home.work() as at:
        await at.ready(awake)
        await at.ready(asleep)
        await at.client.stop(asleep)
        await at.reach(asleep, "stopped")
        page = await at.client.query(ids=[never, asleep, awake], sort="state", order="asc")
        assert [(one.tenant, one.state) for one in page.rows] == [
            (awake, "ready"),
            (asleep, "stopped"),
            (never, "absent"),
        ]
        assert page.total == 3
        second = await at.client.query(
            ids=[never, asleep, awake], sort="state", order="asc", offset=1, limit=1
        )
        assert [one.tenant for one in second.rows] == [asleep]
        assert second.total == 3
        absent = await at.client.query(ids=[never, asleep, awake], state="absent")
        assert [one.tenant for one in absent.rows] == [never]
        everybody = await at.client.query(sort="changed_at", order="desc")
        assert [one.tenant for one in everybody.rows] == [asleep, awake]
        ready = await at.client.query(state="ready")
        assert ([one.tenant for one in ready.rows], ready.total) == ([awake], 1)


async def test_host_says_that_processes_give_no_wall(home: House) -> None:
    async with home.work() as at:
        await at.ready(tenant())
        host = await at.client.host()
        assert (host.runtime, host.wall, host.instances) == ("process", False, {"ready": 1})
