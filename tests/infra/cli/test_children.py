"""The supervisor over real processes."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from infra.cli import leftovers
from infra.cli.children import Child, Spec, once, stop_in_order
from infra.cli.home import Trouble
from tests.waiting import stretch, until, until_sync

pytestmark = pytest.mark.thorough

FAKE = Path(__file__).with_name("fake_service.py")
Make = Callable[..., Child]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    children: list[Child] = []

    def one(name: str, *ways: str, **options: float) -> Child:
        socket = tmp_path / f"{name}.sock"
        command = [sys.executable, str(FAKE), name, str(socket), str(tmp_path / "journal"), *ways]
        spec = Spec(name, f"The {name}", command, dict(os.environ), f"unix://{socket}", **options)  # type: ignore[arg-type]
        children.append(Child(spec, tmp_path, told(tmp_path)))
        return children[-1]

    yield one
    for child in children:
        await child.stop()


def told(place: Path) -> Callable[[str], None]:
    def tell(text: str) -> None:
        with (place / "told").open("a") as file:
            file.write(text + "\n")

    return tell


def journal(place: Path) -> list[list[str]]:
    path = place / "journal"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def alive(pid: int) -> bool:
    return leftovers.identity(pid) is not None


async def test_services_stop_last_started_first_and_one_after_another(
    make: Make, tmp_path: Path
) -> None:
    started = [make("meter"), make("spawner"), make("gateway")]
    for child in started:
        await child.start()
    pids = [child.pid for child in started]
    await stop_in_order(list(reversed(started)), by_s=time.monotonic() + 9)
    assert [line[:2] for line in journal(tmp_path)] == [
        ["started", "meter"],
        ["started", "spawner"],
        ["started", "gateway"],
        ["stopped", "gateway"],
        ["stopped", "spawner"],
        ["stopped", "meter"],
    ]
    assert not any(alive(pid) for pid in pids if pid)


async def test_service_is_started_again_when_it_is_killed(make: Make, tmp_path: Path) -> None:
    child = make("meter")
    await child.start()
    child.keep()
    first = child.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await until(lambda: len(journal(tmp_path)) == 2)
    assert child.pid not in (None, first)
    assert "ended (SIGKILL); starting it again" in (tmp_path / "told").read_text()


async def test_restarts_become_slower_when_a_service_keeps_dying(
    make: Make, tmp_path: Path
) -> None:
    child = make("meter", "dying")
    await child._spawn()
    child.keep()
    await until(lambda: len(journal(tmp_path)) >= 3)
    count = len(journal(tmp_path))
    await stretch(0.5)
    assert len(journal(tmp_path)) <= count + 1


@pytest.mark.slow  # measures time
async def test_service_and_what_it_started_are_killed_when_it_ignores_sigterm(
    make: Make, tmp_path: Path
) -> None:
    child = make("spawner", "stubborn", "with-child", stop_s=0.3)
    await child.start()
    pid = child.pid
    began = time.monotonic()
    await child.stop()
    assert 0.3 <= time.monotonic() - began < 2
    grandchild = int(journal(tmp_path)[0][0].removeprefix("child-"))
    assert pid is not None
    await until(lambda: not alive(pid) and not alive(grandchild))
    assert ["ignored", "spawner", str(pid)] in journal(tmp_path)
    assert "did not end within 0.3 s" in (tmp_path / "told").read_text()


async def test_service_has_the_time_that_others_do_not_need_when_it_is_slow_to_end(
    make: Make, tmp_path: Path
) -> None:
    started = [make("meter", stop_s=0.5), make("gateway", "slow", stop_s=0.2)]
    for child in started:
        await child.start()
    await stop_in_order(list(reversed(started)), by_s=time.monotonic() + 5)
    assert [line[:2] for line in journal(tmp_path)][2:] == [
        ["stopped", "gateway"],
        ["stopped", "meter"],
    ]
    assert not (tmp_path / "told").exists()


@pytest.mark.slow  # measures time
async def test_services_end_in_time_when_none_listens(make: Make, tmp_path: Path) -> None:
    started = [make(name, "stubborn", stop_s=0.4) for name in ("meter", "spawner", "gateway")]
    for child in started:
        await child.start()
    began = time.monotonic()
    await stop_in_order(list(reversed(started)), by_s=began + 2)
    assert time.monotonic() - began < 2.5
    told = (tmp_path / "told").read_text()
    assert "The gateway did not end within 1.2 s" in told
    assert "The spawner did not end within 0.4 s" in told


async def test_start_fails_with_the_end_of_the_log_when_the_configuration_is_bad(
    make: Make,
) -> None:
    with pytest.raises(Trouble, match="bad configuration") as caught:
        await make("meter", "bad-config").start()
    assert "ALCOVE_FAKE_LISTEN: is required" in str(caught.value)


async def test_start_fails_when_a_service_never_becomes_ready(make: Make, tmp_path: Path) -> None:
    child = make("meter", ready_s=0.3)
    silent = Spec(**{**vars(child.spec), "url": f"unix://{tmp_path}/other.sock"})
    other = Child(silent, tmp_path, print)
    with pytest.raises(Trouble, match=r"was not ready after 0 s"):
        await other.start()
    await other.stop()


async def test_once_leaves_no_process_when_it_is_cancelled(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    task = asyncio.create_task(
        once(["sh", "-c", f"echo $$ > {pid_file}; sleep 600"], {**os.environ})
    )
    await until(lambda: pid_file.exists() and pid_file.read_text().strip())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not alive(int(pid_file.read_text())))


def test_children_die_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    program = f"""
import asyncio, os, sys
from pathlib import Path
from infra.cli.children import Child, Spec
here = Path({str(tmp_path)!r})
command = [sys.executable, {str(FAKE)!r}, "meter", str(here / "m.sock"), str(here / "journal")]
async def main():
    child = Child(Spec("meter", "M", command, dict(os.environ), f"unix://{{here}}/m.sock"), here, print)
    await child.start()
    print(child.pid, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""
    supervisor = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    )
    assert supervisor.stdout is not None
    pid = int(supervisor.stdout.readline())
    supervisor.kill()
    supervisor.wait()
    supervisor.stdout.close()
    until_sync(lambda: not alive(pid))
    assert journal(tmp_path)[-1][0] == "stopped"


def test_leftovers_are_ended_and_strangers_with_their_number_are_not() -> None:
    old = subprocess.Popen(["sleep", "600"])
    stranger = subprocess.Popen(["sleep", "600"])
    known, other = leftovers.identity(old.pid), leftovers.identity(stranger.pid)
    assert known
    assert other
    leftovers.end({"meter": known, "spawner": [other[0], other[1] - 1]})
    assert old.wait(5) == -signal.SIGTERM
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()
