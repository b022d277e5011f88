"""Two tenants are strangers: no id of one means anything to the other, nor does any file, key or noise."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from infra.kit import ids, unix
from infra.kit.client import session
from tests import scripted as s
from tests.journeys import evidence
from tests.journeys.house import House
from tests.journeys.pair import SECRET_WORDS, Pair
from tests.journeys.person import Person
from tests.missing import lacks
from tests.waiting import until

pytestmark = pytest.mark.thorough


async def test_waiting_message_is_unknown_when_another_names_it(house: House, pair: Pair) -> None:
    mine = ids.ulid()
    async with Person(house.url) as late:
        await late.sign_up()
        house.kill("spawner")
        assert (await late.say("are you there", ids.ulid(), mine))["state"] == "waiting"
        for method, path in (("DELETE", ""), ("POST", "/retries")):
            status, _ = await pair.bob.call(method, f"/api/pending-messages/{mine}{path}")
            assert status == 404
        status, his = await pair.bob.call("GET", "/api/pending-messages")
        assert (status, his["messages"]) == (200, [])
        _, hers = await late.call("GET", "/api/pending-messages")
        assert [m["client_message_id"] for m in hers["messages"]] == [mine]
        assert (await late.call("DELETE", f"/api/pending-messages/{mine}"))[0] == 204


async def test_stream_shows_its_own_words_only_when_another_cursor_is_given(
    house: House, pair: Pair, scripted: s.ScriptedProvider
) -> None:
    scripted.then(s.last_contains("and mine"), reply=s.text("yours alone"))
    async with pair.ada.tab() as hers:
        await until(lambda: hers.cursor)
    async with pair.bob.tab() as his:
        his.cursor = hers.cursor
    async with pair.bob.tab(his):
        turn = (await pair.bob.say("and mine", ids.ulid()))["turn_id"]
        await his.ended(turn)
    assert "xylophone" not in str(his.events)
    assert pair.conversation not in str(his.events)


async def test_same_conversation_id_is_another_conversation_when_another_writes_in_it(
    house: House, pair: Pair, scripted: s.ScriptedProvider
) -> None:
    scripted.then(
        s.last_contains("what was said"),
        s.that("knows nothing of hers", lambda r: "xylophone" not in r.body.decode()),
        reply=s.text("nothing yet"),
    )
    async with pair.bob.tab() as his:
        turn = (await pair.bob.say("what was said here?", pair.conversation))["turn_id"]
        await his.ended(turn)
    assert len(await pair.bob.messages(pair.conversation)) == 2
    assert len(await pair.ada.messages(pair.conversation)) == 2


async def ask_models(socket: Path, key: str) -> int:
    """The status that the meter's tenant listener gives to this key."""
    client, base = session(f"unix://{socket}")
    async with client:
        headers = {"authorization": f"Bearer {key}"}
        async with client.get(f"{base}/v1/models", headers=headers) as response:
            return response.status


async def test_key_is_refused_and_noted_when_it_comes_to_a_strangers_socket(
    house: House, pair: Pair
) -> None:
    mine = house.sockets / "t" / pair.stranger / "1" / "meter"
    hers = house.sockets / "t" / pair.tenant / "1" / "meter"
    key = (mine / "key").read_text()
    assert await ask_models(mine / "meter.sock", key) == 200
    assert await ask_models(hers / "meter.sock", key) == 401
    assert await ask_models(hers / "meter.sock", "made-up") == 401
    noted = await evidence.rows(house, "metering_proxy", "SELECT what, tenant FROM audit")
    assert [row["tenant"] for row in noted] == [pair.tenant]
    assert (hers / "key").read_text() not in str(noted)


@pytest.mark.parametrize("trick", ["link to the spawner", "link to another", "another's listener"])
async def test_trick_leads_nowhere_when_it_lies_at_the_agents_socket(
    house: House, pair: Pair, trick: str
) -> None:
    socket = house.sockets / "t" / pair.tenant / "1" / "agent" / "agent.sock"
    socket.parent.chmod(0o770)
    socket.unlink()
    async with AsyncExitStack() as tricks:
        reached: list[bytes] = []
        if trick == "link to the spawner":
            socket.symlink_to(house.sockets / "control" / "spawner.sock")
        elif trick == "link to another":
            socket.symlink_to(house.sockets / "t" / pair.stranger / "1" / "agent" / "agent.sock")
        elif os.geteuid() == 0:
            await tricks.enter_async_context(listening(socket, reached))
            os.chown(socket, 12345, 12345)
        else:
            lacks("a socket of another owner needs root", "run the tests as root")
        house.kill("gateway")  # with its open connections to the agent: the next must be made anew
        await house.start_service("gateway")
        path = f"/api/conversations/{pair.conversation}/messages"
        status, answer = await pair.ada.call("GET", path)
        if status == 200:  # the spawner has seen it and has put another generation in its place
            assert [m["text"] for m in answer["messages"]] == [SECRET_WORDS, "I will keep it."]
            assert (await house.spawner.instance(pair.tenant)).generation > 1
        else:
            assert (status, answer["error"]["code"]) == (503, "unavailable")
        assert reached == []


@asynccontextmanager
async def listening(path: Path, reached: list[bytes]) -> AsyncIterator[None]:
    """A listener at `path` that notes what it is sent, while the block runs."""

    async def listens(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(await reader.read(100))
        writer.close()

    server = await asyncio.start_unix_server(listens, sock=unix.bind(path))
    try:
        yield
    finally:
        server.close()
        await server.wait_closed()


@pytest.mark.slow  # measures time
async def test_neighbour_is_not_slowed_when_500_connections_are_silent(
    house: House, pair: Pair, scripted: s.ScriptedProvider
) -> None:
    path = house.sockets / "t" / pair.tenant / "1" / "meter" / "meter.sock"
    silent = []
    try:
        for _ in range(500):
            silent.append(await unix.connect(path))
        scripted.then(s.last_contains("quick"), reply=s.text("here"))
        async with pair.bob.tab() as his:
            began = time.monotonic()
            turn = (await pair.bob.say("be quick", ids.ulid()))["turn_id"]
            await his.ended(turn)
            assert time.monotonic() - began < 3
    finally:
        for sock in silent:
            sock.close()


async def test_agent_api_needs_the_instance_secret_when_called_directly(
    house: House, pair: Pair
) -> None:
    socket = house.sockets / "t" / pair.tenant / "1" / "agent" / "agent.sock"
    client, base = session(f"unix://{socket}")
    async with client:
        for secret in (
            "",
            "wrong",
            (house.sockets / f"t/{pair.stranger}/1/meter/instance_secret").read_text(),
        ):
            headers = {"authorization": f"Bearer {secret}"} if secret else {}
            async with client.get(f"{base}/api/conversations", headers=headers) as response:
                assert response.status == 401


async def test_service_calls_need_the_service_secret_when_made_by_anybody(house: House) -> None:
    own = {"meter": ("/tenants/x/quota", "/providers"), "spawner": ("/instances/x", "/host")}
    for name in own:
        client, base = session(house.control(name))
        async with client:
            for path in (*own["meter"], *own["spawner"]):
                async with client.get(base + path, headers={"authorization": "Bearer x"}) as found:
                    wanted = (401,) if path in own[name] else (401, 404)
                    assert found.status in wanted, f"{name} {path}: {found.status}"


async def test_nothing_is_answered_when_nobody_is_signed_in(house: House) -> None:
    async with aiohttp.ClientSession() as nobody:
        for path in (
            "/api/conversations",
            "/api/stream",
            "/api/session",
            "/api/memory",
            "/api/pending-messages",
            "/usage",
            "/admin/tenants",
            "/chat",
        ):
            async with nobody.get(house.url + path, allow_redirects=False) as response:
                assert response.status in (401, 303), f"{path}: {response.status}"
