"""The pieces that both ends of HTTP/1.1 share: a deadline that moves, bytes that wait within a bound."""

import asyncio

import pytest

from infra.kit.http1.deadline import Deadline
from infra.kit.http1.inflow import HIGH_WATER_BYTES, Inflow
from tests.waiting import stretch, until


class Fired:
    """A deadline that notes when it was reached."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.at: list[float] = []
        self.began = self._loop.time()
        self.deadline = Deadline(self._loop, lambda: self.at.append(self._loop.time() - self.began))


async def test_deadline_is_reached_once_when_it_was_moved_on() -> None:
    fired = Fired()
    fired.deadline.set(0.02)
    fired.deadline.set(0.1)
    await until(lambda: fired.at)
    assert fired.at[0] >= 0.09
    await stretch(0.12)
    assert len(fired.at) == 1


async def test_deadline_is_reached_early_when_it_was_moved_back() -> None:
    fired = Fired()
    fired.deadline.set(60)
    fired.deadline.set(0.02)
    await until(lambda: fired.at, timeout_s=5)


@pytest.mark.parametrize("ending", ["clear", "close"])
async def test_deadline_is_never_reached_when_it_was_taken_back(ending: str) -> None:
    fired = Fired()
    fired.deadline.set(0.01)
    getattr(fired.deadline, ending)()
    await stretch(0.05)
    assert fired.at == []
    fired.deadline.set(0.01)
    await until(lambda: fired.at)


class Tap:
    """A valve that counts."""

    def __init__(self) -> None:
        self.turns: list[str] = []

    def hold(self) -> None:
        self.turns.append("hold")

    def flow(self) -> None:
        self.turns.append("flow")


async def test_sender_is_held_back_when_too_much_waits() -> None:
    tap = Tap()
    inflow = Inflow(tap)
    for _ in range(3):
        inflow.feed(bytes(HIGH_WATER_BYTES // 2 + 1))
    assert tap.turns == ["hold"]
    assert len(await inflow.read()) == 3 * (HIGH_WATER_BYTES // 2 + 1)
    assert tap.turns == ["hold", "flow"]


async def test_bytes_come_before_the_error_when_a_body_breaks_off() -> None:
    inflow = Inflow(Tap())
    inflow.feed(b"half")
    inflow.fail(ValueError("cut"))
    inflow.feed(b" and more")
    assert await inflow.read() == b"half and more"
    with pytest.raises(ValueError, match="cut"):
        await inflow.read()


async def test_error_changes_nothing_when_the_body_is_whole() -> None:
    inflow = Inflow(Tap())
    inflow.end()
    inflow.fail(ValueError("late"))
    assert await inflow.read() == b""


async def test_parts_are_pushed_in_one_piece_when_they_came_in_one_read() -> None:
    inflow, taken = Inflow(Tap()), list[bytes]()

    def take(part: bytes) -> bool:
        taken.append(part)
        return True

    pushing = asyncio.create_task(inflow.push(take))
    await until(lambda: inflow.waiting)
    for part in (b"a", b"b"):
        inflow.feed(part)
    inflow.flush()
    assert taken == [b"ab"]
    inflow.feed(b"c")
    inflow.end()
    assert await pushing
    assert taken == [b"ab", b"c"]
