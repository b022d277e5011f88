"""`alcove run` as a person starts it, around stand-ins for the three services."""

import contextlib
import signal
import socket
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from infra.cli import leftovers
from tests.infra.cli.running import Run
from tests.waiting import until_sync

pytestmark = pytest.mark.thorough

WORLD = Path(__file__).with_name("world")
Start = Callable[..., Run]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    runs: list[Run] = []

    def begin(**environment: str) -> Run:
        runs.append(Run(tmp_path, WORLD, ALCOVE_LOCAL_MODELS="0", **environment))
        return runs[-1]

    yield begin
    for run in runs:
        run.close()


def test_run_starts_in_order_says_where_to_go_and_stops_in_order(start: Start) -> None:
    run = start().ready()
    port = run.state()["port"]
    assert f"Open http://127.0.0.1:{port}\n" in run.output()
    assert f"http://127.0.0.1:{port}/first/abc" in run.output()
    assert "✗ engine: forbidden here → allow it" in run.output()
    assert "NO WALL" in run.output()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
        assert answer.status == 200
    pids, sockets = run.pids(), Path(str(run.state()["sockets"]))
    assert set(pids) >= {"meter", "spawner", "gateway"}

    assert run.end() < 10
    assert run.process.returncode == 0, run.output()
    assert [pid for pid in pids.values() if leftovers.identity(pid)] == []
    assert not sockets.exists()
    migrated = run.journal()[:3]
    assert sorted(migrated) == ["migrate gateway", "migrate metering_proxy", "migrate spawner"]
    assert sorted(run.journal()[3:5]) == ["serve metering_proxy", "serve spawner"]
    assert run.journal()[5:9] == [
        *("serve gateway", "admin-link gateway", "stopped gateway", "stopped spawner"),
    ]
    assert sorted(run.journal()[9:]) == ["stopped metering_proxy", "sweep spawner"]


def test_taken_port_is_named_in_one_line_when_a_first_run_moves(start: Start) -> None:
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):  # it is taken already
            held.enter_context(socket.create_server(("127.0.0.1", 8000)))
        run = start().ready()
        port = run.state()["port"]
        assert port != 8000
        said = [line for line in run.output().splitlines() if "8000" in line]
        assert said == [f"  ! Port 8000 is taken by another program; this run uses {port}"]


def test_second_run_finds_its_secrets_and_port_again(start: Start) -> None:
    first = start().ready()
    before, secret = first.state(), first.place / "data" / "secrets" / "service_secret"
    made = secret.read_bytes()
    first.end(signal.SIGTERM)
    again = start().ready()
    after = again.state()
    assert {key: after[key] for key in ("port", "deployment", "secrets")} == {
        key: before[key] for key in ("port", "deployment", "secrets")
    }
    assert secret.read_bytes() == made
    again.end()


@pytest.mark.slow
def test_run_ends_within_ten_seconds_when_every_service_ignores_the_signal(start: Start) -> None:
    names = ("gateway", "spawner", "metering_proxy")
    run = start(FAKE_TROUBLE=",".join(f"stubborn:{name}" for name in names)).ready()
    pids = run.pids()
    assert run.end() < 10
    assert [pid for pid in pids.values() if leftovers.identity(pid)] == []
    assert [line for line in run.journal() if line.startswith("ignored")] == [
        f"ignored {name}" for name in ("gateway", "spawner", "metering_proxy")
    ]


def test_run_ends_with_the_reason_when_a_migration_fails(start: Start) -> None:
    run = start(FAKE_TROUBLE="migrate:spawner")
    assert run.process.wait(20) == 1
    assert "the database is from the future" in run.output()
    assert "serve gateway" not in run.journal()


def test_run_leaves_nothing_when_it_is_interrupted_while_it_starts(start: Start) -> None:
    run = start(FAKE_TROUBLE="silent:spawner")
    until_sync(lambda: "serve spawner" in run.journal(), timeout_s=20)
    pids = run.pids()
    assert run.end() < 10
    assert [pid for pid in pids.values() if leftovers.identity(pid)] == []
    assert "sweep spawner" in run.journal()


def test_next_run_waits_for_the_children_of_a_killed_one(start: Start) -> None:
    first = start().ready()
    old = first.pids()
    first.process.kill()
    first.process.wait()
    second = start().ready()
    assert [pid for pid in old.values() if leftovers.identity(pid)] == []
    assert set(old.values()).isdisjoint(second.pids().values())
    second.end()


def test_second_run_beside_the_first_is_refused(start: Start) -> None:
    first = start().ready()
    second = start()
    assert second.process.wait(20) == 1
    assert "already runs here" in second.output()
    assert first.process.poll() is None
    first.end()
