"""What tenants' data takes: measured without trusting it, told, and held to what the plan allows."""

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from infra.kit.clock import FakeClock
from infra.kit.errors import AlcoveError
from spawner import data
from spawner.runtimes.process import ProcessRuntime
from tests.spawner.house import House, Working, tenant
from tests.waiting import until

pytestmark = pytest.mark.thorough

MOST = 50_000_000


def size(path: Path, most_bytes: int = MOST) -> int | None:
    return data.size(path, most_bytes=most_bytes)


def test_size_is_what_the_disk_gives_when_files_are_plain_sparse_or_named_twice(
    tmp_path: Path,
) -> None:
    assert size(tmp_path / "none") == size(tmp_path) == 0
    (tmp_path / "plain").write_bytes(b"x" * 1_000_000)
    (tmp_path / "again").hardlink_to(tmp_path / "plain")
    with (tmp_path / "sparse").open("wb") as sparse:
        sparse.truncate(1 << 40)
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "small").write_bytes(b"x")
    found = size(tmp_path)
    assert found is not None
    assert 1_000_000 <= found <= 1_100_000


def test_size_follows_and_opens_nothing_when_a_tenant_put_tricks_there(tmp_path: Path) -> None:
    mine, hers = tmp_path / "mine", tmp_path / "hers"
    hers.mkdir()
    mine.mkdir()
    (hers / "big").write_bytes(b"x" * 5_000_000)
    (mine / "to a file").symlink_to(hers / "big")
    (mine / "to a directory").symlink_to(hers)
    (mine / "to itself").symlink_to(mine)
    os.mkfifo(mine / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(mine / "socket"))
    found = size(mine)
    assert found is not None
    assert found < 100_000
    (tmp_path / "link").symlink_to(hers)
    assert size(tmp_path / "link") is None


def test_size_goes_past_the_limit_when_files_are_many_or_directories_deep(tmp_path: Path) -> None:
    many, deep = tmp_path / "many", tmp_path / "deep"
    many.mkdir()
    for number in range(300):
        (many / str(number)).touch()
    counted = size(many, 1_000_000)
    assert counted is not None
    assert 1_000_000 < counted < 1_010_000
    deep.mkdir()
    here = os.open(deep, os.O_RDONLY)
    for _ in range(3000):  # deeper than any path may be long
        os.mkdir("d" * 20, dir_fd=here)
        below = os.open("d" * 20, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    assert size(deep) == MOST + 1
    _remove_deep(deep, 3000)


def _remove_deep(path: Path, depth: int) -> None:
    """What shutil cannot: takes the top directory out of its parent again and again."""
    for _ in range(depth):
        below = path / ("d" * 20)
        below.rename(path.with_name("next"))
        path.rmdir()
        path.with_name("next").rename(path)


class Fat(ProcessRuntime):
    """Counts each byte as a thousand, so that a test need not fill a disk."""

    async def stored(self, most_bytes: Mapping[str, int]) -> dict[str, int]:
        found = await super().stored(most_bytes)
        return {who: 1000 * size for who, size in found.items()}


async def measured(at: Working, who: str) -> None:
    """A measurement, and what follows from it."""
    await at.spawner.storage.round()
    await at.spawner.drivers.settled(who)


async def filled(home: House, at: Working, who: str, file_bytes: int) -> Path:
    """A file of that length that the tenant wrote when it was ready, and what followed; where it is."""
    await at.ready(who)
    much = home.data(who) / "much"
    much.write_bytes(b"x" * file_bytes)
    await measured(at, who)
    return much


def level(at: Working, name: str) -> float:
    found = at.spawner.base.metrics.registry.get_sample_value(
        "spawner_storage_tenants", {"level": name}
    )
    assert found is not None
    return found


async def test_tenant_sleeps_and_is_told_when_its_storage_is_full_and_wakes_with_a_larger_plan(
    home: House,
) -> None:
    who, neighbour = tenant(), tenant()
    async with home.work(runtime_class=Fat, poll_s=3600) as at:
        await at.ready(who)
        await at.ready(neighbour)
        (home.data(who) / "much").write_bytes(b"x" * 850_000)
        await measured(at, who)
        assert (await at.client.instance(who)).state == "ready"
        assert (level(at, "near"), level(at, "full")) == (1, 0)

        (home.data(who) / "more").write_bytes(b"x" * 500_000)
        await measured(at, who)
        asleep = await at.client.instance(who)
        assert asleep.state == "stopped"
        assert asleep.stored_bytes is not None
        assert asleep.storage_bytes is not None
        assert asleep.stored_bytes > asleep.storage_bytes == 1_000_000_000
        told = [event.message for event in await at.spawner.journal.after(who, 0)]
        said = "Your assistant has filled the 1.0 GB that your plan gives it; it is put to sleep"
        assert said in told
        assert (level(at, "near"), level(at, "full")) == (0, 1)
        assert (await at.client.instance(neighbour)).state == "ready"

        with pytest.raises(AlcoveError) as refused:
            await at.client.wake(who, "message")
        assert (refused.value.code, refused.value.reason) == ("forbidden", "storage_full")
        await at.client.set_plan(who, "plus")
        assert (await at.ready(who)).generation == 2


async def test_tenant_wakes_again_when_its_storage_was_cleared(home: House) -> None:
    who = tenant()
    async with home.work(runtime_class=Fat, poll_s=3600) as at:
        much = await filled(home, at, who, 2_000_000)
        with pytest.raises(AlcoveError):
            await at.client.wake(who, "message")
        much.unlink()
        await at.spawner.storage.round()
        await at.ready(who)


async def test_owner_has_a_while_to_delete_and_goes_on_when_there_is_room_again(
    home: House,
) -> None:
    who, clock = tenant(), FakeClock(time.time_ns() // 1_000_000)
    async with home.work(runtime_class=Fat, poll_s=3600, clock=clock) as at:
        much = await filled(home, at, who, 1_100_000)
        assert (await at.client.clear(who)).clearing_until_at == clock.now_at() + 900_000
        assert (await at.client.instance(who)).state == "stopped", "it is not woken by that"
        await at.ready(who)
        clock.advance(600)
        await measured(at, who)
        assert (await at.client.instance(who)).state == "ready"
        much.unlink()
        await measured(at, who)
        clock.advance(600)
        await measured(at, who)
        assert (await at.client.instance(who)).state == "ready"


async def test_tenant_sleeps_again_when_nothing_was_deleted_in_time(home: House) -> None:
    who, clock = tenant(), FakeClock(time.time_ns() // 1_000_000)
    async with home.work(runtime_class=Fat, poll_s=3600, clock=clock) as at:
        await filled(home, at, who, 1_100_000)
        await at.client.clear(who)
        await at.ready(who)
        clock.jump(-3600)  # the while is a length of time
        await at.spawner.supervise()
        clock.advance(901)
        await measured(at, who)
        assert (await at.client.instance(who)).state == "stopped"
        with pytest.raises(AlcoveError) as refused:
            await at.client.wake(who, "message")
        assert refused.value.reason == "storage_full"
        await at.client.clear(who)
        await at.ready(who)


async def test_nobody_is_awake_past_the_ceiling_while_they_delete(home: House) -> None:
    who = tenant()
    async with home.work(runtime_class=Fat, poll_s=3600) as at:
        much = await filled(home, at, who, 1_100_000)
        await at.client.clear(who)
        await at.ready(who)
        much.write_bytes(b"x" * 1_300_000)
        await measured(at, who)
        assert (await at.client.instance(who)).state == "stopped"
        for ask in (at.client.clear(who), at.client.wake(who, "message")):
            with pytest.raises(AlcoveError) as refused:
                await ask
            assert refused.value.code == "forbidden"
        with pytest.raises(AlcoveError) as past:
            await at.client.clear(who)
        assert past.value.reason == "storage_past_ceiling"


async def test_leave_to_delete_is_none_when_there_is_room(home: House) -> None:
    who = tenant()
    async with home.work(runtime_class=Fat, poll_s=3600) as at:
        await at.ready(who)
        await measured(at, who)
        assert (await at.client.clear(who)).clearing_until_at is None


async def test_next_measurement_waits_when_one_took_long(home: House) -> None:
    who = tenant()
    async with home.work(runtime_class=Fat, poll_s=3600) as at:
        await at.ready(who)
        await at.spawner.storage.round()
        first = (await at.client.instance(who)).stored_bytes
        (home.data(who) / "more").write_bytes(b"x" * 100_000)
        rounds = 0

        async def seen() -> bool:
            nonlocal rounds
            rounds += 1
            await at.spawner.storage()
            return (await at.client.instance(who)).stored_bytes != first

        await until(seen, timeout_s=30, what="the next measurement")
        at_once = rounds
        (home.data(who) / "even more").write_bytes(b"x" * 100_000)
        first = (await at.client.instance(who)).stored_bytes
        assert not await seen(), "it took its time, and did not rest"
        await until(seen, timeout_s=30, what="the measurement after it")
        assert rounds > at_once + 1
