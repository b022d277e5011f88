"""`alcove run` with the real services: what a person sees who has just cloned the repository."""

import asyncio
import re
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.cli import leftovers
from infra.kit import ids
from infra.setup import images
from tests import leaks
from tests.infra.cli.running import Run
from tests.journeys.person import Person
from tests.waiting import until, until_sync

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
    assert [line for run in runs for line in run.accidents()] == []


def get(url: str) -> tuple[int, str]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.status, answer.read().decode()


def link_of(run: Run) -> str:
    """The one-time link that the start lines show."""
    found = re.search(r"^Become the admin .*: (\S+)$", run.output(), re.M)
    assert found is not None, run.output()
    return found[1]


def nothing_left(run: Run, pids: dict[str, int]) -> None:
    assert [name for name, pid in pids.items() if leftovers.identity(pid)] == []
    assert not Path(str(run.state()["sockets"])).exists()


def test_pages_answer_and_nothing_is_left_when_agents_are_processes(start: Start) -> None:
    first = start().ready(60)
    address = re.search(r"^Open (\S+)$", first.output(), re.M)
    assert address is not None
    assert get(f"{address[1]}/readyz")[0] == 200
    assert "<form" in get(link_of(first))[1]
    assert "NO WALL" in first.output()
    pids = first.pids()
    assert set(pids) >= {"chat", "embeddings", "meter", "spawner", "gateway"}
    assert first.end() < 10
    nothing_left(first, pids)


async def test_everything_ends_by_itself_and_is_found_again_when_a_conversation_is_under_way(
    start: Start,
) -> None:
    first = start().ready(60)
    address, link = f"http://127.0.0.1:{first.state()['port']}", link_of(first)
    conversation = ids.ulid()
    async with Person(address, "ada@example.org") as ada, Person(address) as late:
        await ada.become_admin(link)
        with pytest.raises(AssertionError, match="the admin link answered 409"):
            await late.become_admin(link)
        await ada.wake()
        async with ada.tab() as tab, ada.tab(), ada.tab():
            turn = (await ada.say("What is two and two?", conversation))["turn_id"]
            assert (await tab.ended(turn, timeout_s=60))["type"] == "RUN_FINISHED"
            story = (await ada.say("Tell me a long story of the sea.", conversation))["turn_id"]
            await until(lambda: story in [f["turn_id"] for f in tab.named("RUN_STARTED")])
            pids = first.pids()
            assert await asyncio.to_thread(first.end) < 10
    assert "killed" not in first.output()
    nothing_left(first, pids)

    second = start().ready(15)
    assert re.search(r"Ready after (\d|1[0-4]) s", second.output())
    assert "Become the admin" not in second.output()
    async with Person(address, "ada@example.org") as ada:
        await ada.sign_in()
        assert (await ada.call("GET", "/api/session"))[1]["is_admin"] is True
        await ada.wake()
        asked, answered, *_ = await ada.messages(conversation)
        assert asked["text"] == "What is two and two?"
        assert answered["text"] == tab.text(turn) != ""
        assert (await ada.page("/admin/tenants")).count("ada@example.org")
    assert await asyncio.to_thread(second.end) < 10


@pytest.mark.parametrize(
    "begun", ["Bring the databases", "The meter", "The spawner", "The gateway", "Ready after"]
)
def test_nothing_is_left_and_nothing_breaks_when_it_is_ended_while_it_starts(
    start: Start, begun: str
) -> None:
    run = start(ALCOVE_LOCAL_MODELS="0")
    until_sync(lambda: begun in run.output(), timeout_s=30, what=begun)
    assert run.end() < 10
    assert run.process.returncode == 0, run.output()
    assert "killed" not in run.output()


async def test_nothing_breaks_when_it_is_ended_while_an_agent_wakes(start: Start) -> None:
    run = start(ALCOVE_LOCAL_MODELS="0").ready(60)
    async with Person(f"http://127.0.0.1:{run.state()['port']}", "ada@example.org") as ada:
        await ada.sign_up()
        status, instance = await ada.call("POST", "/api/wake", {"reason": "page"})
        assert (status, instance["state"] != "ready") == (200, True)
        assert await asyncio.to_thread(run.end) < 10
    assert "killed" not in run.output()


@pytest.mark.docker
async def test_containers_are_chosen_and_none_is_left_when_an_engine_answers(
    start: Start, docker_client: Any
) -> None:
    images.build(images.AGENT)
    run = start(ALCOVE_SPAWNER_RUNTIME="docker").ready(60)
    assert "Agents run as containers" in run.output()
    deployment = {str(run.state()["deployment"])}
    pids = run.pids()
    async with Person(f"http://127.0.0.1:{run.state()['port']}") as ada:
        await ada.sign_up()
        await ada.wake()
        assert len(leaks.containers_of(docker_client, deployment)) == 1
        async with ada.tab():
            assert await asyncio.to_thread(run.end) < 10
    assert "killed" not in run.output()
    nothing_left(run, pids)
    assert not leaks.containers_of(docker_client, deployment)
