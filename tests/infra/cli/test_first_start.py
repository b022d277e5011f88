"""`alcove run` with the real services: what a person sees who has just cloned the repository."""

import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.cli import leftovers
from infra.setup import images
from tests import leaks
from tests.infra.cli.running import Run

pytestmark = pytest.mark.slow
Start = Callable[..., Run]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    runs: list[Run] = []
    # A clone may lie anywhere; its sockets may not.
    place = tmp_path / "a clone with a long name" / ("deep" * 30)
    place.mkdir(parents=True)

    def begin(**environment: str) -> Run:
        runs.append(Run(place, **environment))
        return runs[-1]

    yield begin
    for run in runs:
        run.close()


def get(url: str) -> tuple[int, str]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.status, answer.read().decode()


def nothing_left(run: Run, pids: dict[str, int]) -> None:
    assert [name for name, pid in pids.items() if leftovers.identity(pid)] == []
    assert not Path(str(run.state()["sockets"])).exists()


def test_pages_answer_and_everything_ends_when_agents_are_processes(start: Start) -> None:
    first = start().ready(60)
    address = re.search(r"^Open (\S+)$", first.output(), re.M)
    link = re.search(r"^Become the admin .*: (\S+)$", first.output(), re.M)
    assert address is not None
    assert link is not None
    assert get(f"{address[1]}/readyz")[0] == 200
    assert "<form" in get(link[1])[1]
    assert "NO WALL" in first.output()
    pids = first.pids()
    assert set(pids) >= {"chat", "embeddings", "meter", "spawner", "gateway"}
    assert first.end() < 10
    nothing_left(first, pids)

    second = start().ready(15)
    assert re.search(r"Ready after (\d|1[0-4]) s", second.output())
    assert get(f"{address[1]}/readyz")[0] == 200
    second.end()


@pytest.mark.docker
def test_containers_are_chosen_and_none_is_left_when_an_engine_answers(
    start: Start, docker_client: Any
) -> None:
    images.build(images.AGENT)
    run = start(ALCOVE_SPAWNER_RUNTIME="docker").ready(60)
    assert "Agents run as containers" in run.output()
    deployment = json.loads((run.place / "data" / "state.json").read_text())["deployment"]
    pids = run.pids()
    assert run.end() < 10
    nothing_left(run, pids)
    assert not leaks.containers_of(docker_client, {deployment})
