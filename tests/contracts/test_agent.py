"""What the gateway relies on, asked of a real agent and of the gateway's fake one, over their sockets."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.app import create_app
from agent.tools.builtin import BUILTIN
from infra.kit import ids, service
from infra.kit.clock import SystemClock
from tests import scripted as s
from tests.agent.conftest import Home, serving
from tests.agent.meter import ScriptedMeter
from tests.agent.person import SECRET, Person
from tests.gateway.fake_agent import FakeAgent, Memory

pytestmark = pytest.mark.thorough


@pytest.fixture(params=["real", "fake"])
async def agent(request: pytest.FixtureRequest) -> AsyncIterator[Person]:
    with tempfile.TemporaryDirectory(prefix="agent-") as root:
        home = Home(Path(root))
        socket = home.agent / "agent.sock"
        if request.param == "fake":
            async with service.serving(
                FakeAgent(SECRET, Memory()).app, f"unix://{socket}", grace_s=1
            ):
                yield Person(socket)
            return
        meter = ScriptedMeter()
        meter.always(s.anything, reply=lambda r: s.text("You said: ", r.last_text[-20:], " "))
        async with (
            s.serve(meter, socket_path=home.meter / "meter.sock"),
            serving(create_app(home.settings(), SystemClock(), BUILTIN), socket),
        ):
            yield Person(socket)


async def test_message_is_one_turn_when_it_is_sent_twice(agent: Person) -> None:
    conversation, mine = ids.ulid(), ids.ulid()
    first = await agent.say("hello", conversation, mine)
    assert first["conversation_id"] == conversation
    assert {"turn_id", "message_id", "state"} <= set(first)
    again = await agent.say("hello", conversation, mine)
    assert again["turn_id"] == first["turn_id"]
    body = {"client_message_id": mine, "text": "something else"}
    other = await agent.ask("POST", f"/api/conversations/{conversation}/messages", json=body)
    assert (other.status, other.body["error"]["code"]) == (409, "conflict")


async def test_events_are_numbered_and_offsets_join_when_a_turn_runs(agent: Person) -> None:
    turn = (await agent.say("hello"))["turn_id"]
    page = await agent.ask("GET", "/api/conversations")
    conversation = page.body["conversations"][0]["id"]
    epoch = (await agent.messages(conversation))["epoch"]
    frames = await agent.follow(
        lambda f: f["type"] in ("RUN_FINISHED", "RUN_ERROR"), after=0, epoch=epoch
    )
    numbers = [frame["seq"] for frame in frames]
    assert numbers == sorted(set(numbers))
    kinds = [frame["type"] for frame in frames if frame["turn_id"] == turn]
    assert [k for k in kinds if k not in ("TEXT_MESSAGE_CONTENT", "CUSTOM")] == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    text = ""
    for frame in frames:
        if frame["type"] == "TEXT_MESSAGE_CONTENT":
            assert frame["offset"] == len(text)
            text += frame["delta"]
    assert text.startswith("You said: ")
    assert frames[-1]["outcome"] == "complete"


async def test_stream_goes_on_after_a_number_when_asked_so(agent: Person) -> None:
    await agent.say("hello")
    conversation = (await agent.ask("GET", "/api/conversations")).body["conversations"][0]["id"]
    epoch = (await agent.messages(conversation))["epoch"]
    whole = await agent.follow(lambda f: f["type"] == "RUN_FINISHED", after=0, epoch=epoch)
    rest = await agent.follow(
        lambda f: f["type"] == "RUN_FINISHED", after=whole[-2]["seq"], epoch=epoch
    )
    assert rest == whole[-1:]


async def test_stream_begins_with_a_reset_when_the_epoch_is_foreign(agent: Person) -> None:
    [reset] = await agent.follow(lambda _: True, after=7, epoch="of-another-log")
    assert (reset["type"], reset["name"]) == ("CUSTOM", "log.reset")
    assert {"epoch", "seq"} <= set(reset)


async def test_unknown_ids_are_not_found_when_named(agent: Person) -> None:
    unknown = ids.ulid()
    for method, path, body in (
        ("GET", f"/api/conversations/{unknown}/messages", None),
        ("DELETE", f"/api/conversations/{unknown}", None),
        ("PUT", f"/api/turns/{unknown}/cancellation", None),
        ("POST", f"/api/turns/{unknown}/retries", {"client_message_id": ids.ulid()}),
        ("DELETE", f"/api/memory/{unknown}", None),
    ):
        answer = await agent.ask(method, path, json=body)
        assert answer.status == 404, f"{method} {path}: {answer.status}"
        assert answer.body["error"]["code"] == "not_found"


async def test_conversation_is_created_once_when_put_twice(agent: Person) -> None:
    path = f"/api/conversations/{ids.ulid()}"
    assert (await agent.ask("PUT", path, json={})).status == 201
    assert (await agent.ask("PUT", path, json={})).status == 200
    assert (await agent.ask("DELETE", path)).status == 204
    assert (await agent.ask("DELETE", path)).status == 404


async def test_everything_is_refused_when_the_secret_is_wrong(agent: Person) -> None:
    stranger = Person(agent._socket, "another")
    for path in ("/api/conversations", "/api/memory", "/api/events"):
        assert (await stranger.ask("GET", path)).status == 401
