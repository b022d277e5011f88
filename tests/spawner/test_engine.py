"""An engine that fails, hangs or answers late: what was begun is never left to nobody."""

import asyncio
import threading
from typing import Any

import pytest

from infra.kit.errors import AlcoveError
from spawner.runtimes import Spec
from spawner.runtimes.engine import Engine
from spawner.runtimes.process import ProcessRuntime
from tests.spawner.house import House, tenant
from tests.waiting import until

pytestmark = pytest.mark.thorough


class LateEngine(Engine):
    """Has a client of its own, so that no engine is needed."""

    def client(self) -> Any:
        return self


async def test_cancelled_call_is_waited_for_when_its_thread_goes_on() -> None:
    engine, go_on, done = LateEngine("unix:///nowhere"), threading.Event(), threading.Event()
    begun = threading.Event()

    def late(_: Any) -> None:
        begun.set()
        go_on.wait(5)
        done.set()

    call = asyncio.create_task(engine.call(late))
    await until(begun.is_set)
    call.cancel()
    asyncio.get_running_loop().call_later(0.05, go_on.set)
    with pytest.raises(asyncio.CancelledError):
        await call
    assert done.is_set()
    engine.close()


async def test_starts_go_on_when_every_stop_hangs() -> None:
    engine, go_on = LateEngine("unix:///nowhere"), threading.Event()
    stops = [
        asyncio.create_task(engine.call(lambda _: go_on.wait(5), stop=True)) for _ in range(40)
    ]
    assert await asyncio.wait_for(engine.call(lambda _: "created"), 2) == "created"
    go_on.set()
    await asyncio.gather(*stops)
    engine.close()


async def test_call_is_unavailable_when_no_engine_is_there() -> None:
    engine = Engine("unix:///nowhere/docker.sock")
    with pytest.raises(AlcoveError) as caught:
        await engine.call(lambda client: client.version())
    assert (caught.value.code, caught.value.reason) == ("unavailable", "engine")
    engine.close()


class Failing(ProcessRuntime):
    """Cannot stop anything until it is told to work again."""

    broken = True

    async def stop(self, tenant: str, generation: int, *, grace_s: float) -> None:
        if self.broken:
            raise AlcoveError("unavailable", "the engine is away", reason="engine")
        await super().stop(tenant, generation, grace_s=grace_s)


class Late(ProcessRuntime):
    """Its create succeeds although it was cancelled, as an engine's does."""

    async def create(self, spec: Spec) -> None:
        work = asyncio.ensure_future(self._create_late(spec))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])
            raise

    async def _create_late(self, spec: Spec) -> None:
        await asyncio.sleep(0.2)
        await super().create(spec)


class Hanging(Late):
    """Its create takes as long as the test says, and is waited for."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def _create_late(self, spec: Spec) -> None:
        self.begun.set()
        await self.go_on.wait()
        await super()._create_late(spec)


async def test_stop_is_tried_again_when_the_engine_was_away(home: House) -> None:
    who = tenant()
    async with home.work(runtime_class=Failing) as at:
        runtime = at.spawner.chosen.runtime
        assert isinstance(runtime, Failing)
        await at.ready(who)
        await at.client.stop(who)
        await at.spawner.supervise()
        assert (await at.client.instance(who)).state == "stopping"
        assert set(home.meter.keys) == {(who, 1)}
        runtime.broken = False
        await at.reach(who, "stopped")
        await until(lambda: home.meter.keys == {}, what="the key's return")


async def test_stop_answers_at_once_when_the_engine_hangs_in_a_start(home: House) -> None:
    who = tenant()
    async with home.work(runtime_class=Hanging) as at:
        runtime = at.spawner.chosen.runtime
        assert isinstance(runtime, Hanging)
        await at.client.wake(who, "message")
        await asyncio.wait_for(runtime.begun.wait(), 10)
        stopped = await asyncio.wait_for(at.client.stop(who), 2)
        assert stopped.state == "stopping"
        runtime.go_on.set()
        await at.reach(who, "stopped")
        assert await runtime.instances(who) == []


async def test_nothing_is_left_when_a_create_succeeds_after_the_stop(home: House) -> None:
    who = tenant()
    async with home.work(runtime_class=Late) as at:
        await at.client.wake(who, "message")

        async def creating() -> bool:
            return (await at.client.instance(who)).phase == "create"

        await until(creating, what="the create")
        await at.client.stop(who)
        await at.reach(who, "stopped")
        assert await at.spawner.chosen.runtime.instances(who) == []
        assert home.starts(who) == []
