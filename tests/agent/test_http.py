"""The agent's HTTP surface: who may speak, what is refused and how, and the pages of lists."""

from typing import Any

import pytest

from agent.app import App
from infra.kit import ids
from tests import scripted as s
from tests.agent.conftest import Home
from tests.agent.meter import ScriptedMeter
from tests.agent.person import Answer, Person


async def post(person: Person, conversation: str, **body: Any) -> Answer:
    """Posts a message, legal or not."""
    return await person.ask("POST", f"/api/conversations/{conversation}/messages", json=body)


@pytest.mark.parametrize(
    "path", ["/status", "/api/conversations", "/api/events", "/spans", "/nowhere", "/healthz/x"]
)
async def test_nothing_is_told_without_the_secret(app: App, home: Home, path: str) -> None:
    for secret in ("", "wrong", "ünïcode"):
        answer = await Person(home.agent / "agent.sock", secret).ask("GET", path)
        assert answer.status == 401
        assert answer.body["error"]["code"] == "unauthorized"


async def test_health_is_told_to_everybody(app: App, home: Home) -> None:
    answer = await Person(home.agent / "agent.sock", "wrong").ask("GET", "/healthz")
    assert (answer.status, answer.body) == (200, {"ok": True, "generation": 3})


async def test_status_is_what_the_spawner_reads(person: Person) -> None:
    status = await person.status()
    assert set(status) == {
        "in_flight", "waiting", "busy_until_at", "next_schedule_at", "unread", "oom_kills", "epoch", "last_seq",
    }  # fmt: skip
    assert (status["in_flight"], status["waiting"], status["last_seq"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"client_message_id": "a", "text": ""}, 400),
        ({"client_message_id": "a", "text": "  \n"}, 400),
        ({"client_message_id": "a"}, 400),
        ({"client_message_id": "a", "text": 7}, 400),
        ({"text": "hi"}, 400),
        ({"client_message_id": "a/b", "text": "hi"}, 400),
        ({"client_message_id": "a" * 65, "text": "hi"}, 400),
        ({"client_message_id": "é", "text": "hi"}, 400),
        ({"client_message_id": "a", "text": "hi", "channel": "two words"}, 400),
        ({"client_message_id": "a", "text": "x" * 32_001}, 413),
        ({"client_message_id": "a", "text": "x" * 600_000}, 413),
    ],
)
async def test_message_is_refused_when_it_is_not_one(
    person: Person, body: dict[str, Any], status: int
) -> None:
    answer = await post(person, ids.ulid(), **body)
    assert answer.status == status
    assert answer.body["error"]["code"] == {400: "invalid", 413: "too_large"}[status]
    assert answer.body["error"]["request_id"]
    assert (await person.ask("GET", "/api/conversations")).body["conversations"] == []


async def test_request_is_refused_when_it_is_no_json_object(person: Person) -> None:
    path = f"/api/conversations/{ids.ulid()}/messages"
    for raw in (b"{", b"[]", b'"x"', b"\xff", b'{"text": "\\ud800"}'):
        assert (await person.ask("POST", path, data=raw)).status == 400


async def test_longest_message_is_taken(person: Person, meter: ScriptedMeter) -> None:
    text = "🌍" * 32_000
    meter.then(reply=s.text("long"))
    conversation = ids.ulid()
    await person.answer_to(text, conversation)
    assert (await person.messages(conversation))["messages"][0]["text"] == text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/conversations/{none}/messages", 404),
        ("DELETE", "/api/conversations/{none}", 404),
        ("PUT", "/api/turns/{none}/cancellation", 404),
        ("POST", "/api/turns/{none}/retries", 404),
        ("DELETE", "/api/memory/{none}", 404),
        ("PUT", "/api/conversations/short", 400),
        ("POST", "/api/conversations/short/messages", 400),
        ("GET", "/api/conversations?before=x", 400),
        ("GET", "/api/conversations?limit=-1", 400),
        ("GET", "/api/events?after=x", 400),
        ("PATCH", "/api/conversations", 404),
        ("GET", "/api/conversations/", 404),
    ],
)
async def test_path_is_refused_when_nothing_is_there(
    person: Person, method: str, path: str, status: int
) -> None:
    body = {"client_message_id": "a", "text": "hi"}
    answer = await person.ask(method, path.format(none=ids.ulid()), json=body)
    assert answer.status == status, answer.body


async def test_request_id_follows_the_message_to_the_model(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.then(reply=s.text("x"))
    trace = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    headers = {"x-request-id": "req-42", "traceparent": trace}
    receipt = await person.say("hello", headers=headers)
    await person.ended(receipt["turn_id"])
    sent = meter.model_requests[0].headers
    assert sent["x-request-id"] == "req-42"
    assert sent["traceparent"].split("-")[1] == "a" * 32
    found = (await person.ask("GET", "/spans")).body
    spans = found["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert {span["name"] for span in spans} == {"chat", "invoke_agent"}
    by_name = {span["name"]: span for span in spans}
    assert by_name["invoke_agent"]["parentSpanId"] == "b" * 16
    assert by_name["chat"]["parentSpanId"] == by_name["invoke_agent"]["spanId"]
    assert sent["traceparent"].split("-")[2] == by_name["chat"]["spanId"]
    assert (await person.ask("GET", f"/spans?after={found['last']}")).body["resourceSpans"] == []


async def test_conversations_are_paged_newest_first_and_found_by_words(
    person: Person, meter: ScriptedMeter
) -> None:
    meter.always(reply=s.text("the answer mentions quince"))
    made = []
    for n in range(5):
        made.append(ids.ulid())
        await person.answer_to(f"talk number {n} about C++ and 100%", made[-1])
    first = (await person.ask("GET", "/api/conversations?limit=3")).body
    second = (await person.ask("GET", f"/api/conversations?limit=3&before={first['next']}")).body
    listed = [c["id"] for c in first["conversations"] + second["conversations"]]
    assert listed == made[::-1]
    assert second["next"] is None
    assert first["conversations"][0]["title"] == "talk number 4 about C++ and 100%"
    assert first["conversations"][0]["last_turn_state"] == "complete"
    for q, count in (
        ("number 3", 1),
        ("quince", 5),
        ("c++", 5),
        ("%", 5),
        ("_", 0),
        ("talk nothing", 0),
    ):
        found = (await person.ask("GET", "/api/conversations", params={"q": q})).body
        assert len(found["conversations"]) == count, q


async def test_messages_are_paged_oldest_first(person: Person, meter: ScriptedMeter) -> None:
    meter.always(reply=s.text("ok"))
    conversation = ids.ulid()
    for n in range(4):
        await person.answer_to(f"m{n}", conversation)
    last = await person.messages(conversation, limit=3)
    assert [m["text"] for m in last["messages"]] == ["ok", "m3", "ok"]
    assert last["has_more"]
    assert (last["conversation"]["id"], last["conversation"]["title"]) == (conversation, "m0")
    before = await person.messages(conversation, limit=50, before=last["messages"][0]["id"])
    assert [m["text"] for m in before["messages"]] == ["m0", "ok", "m1", "ok", "m2"]
    assert not before["has_more"]


async def test_conversation_is_made_named_and_announced(person: Person) -> None:
    conversation = ids.ulid()
    path = f"/api/conversations/{conversation}"
    made = await person.ask("PUT", path, json={})
    named = await person.ask("PUT", path, json={"title": "  My \n trip  "})
    assert (made.status, named.status) == (201, 200)
    assert named.body["title"] == "My trip"
    frames = await person.follow(lambda f: f.get("conversation", {}).get("title") == "My trip")
    assert {f["name"] for f in frames} == {"conversation.updated"}
    assert (await person.ask("PUT", path, json={"title": 7})).status == 400
