"""People's programs, through the public port to a real meter: whose key it is, and what goes no further."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import openai
import pytest
from yarl import URL

from metering_proxy import wire
from tests import scripted as s
from tests.gateway.browser import HOST, ORIGIN
from tests.gateway.conftest import Gateway, Serve, settings_for
from tests.metering_proxy.house import MODEL, House, a_house
from tests.scripted import ScriptedProvider
from tests.waiting import until

pytestmark = pytest.mark.thorough

CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 50}


@dataclass
class Door:
    """The gateway's port, the meter behind it, and a key of the tenant `owner`."""

    gateway: Gateway
    house: House
    owner: str
    key: str
    session: aiohttp.ClientSession

    async def ask(
        self, body: Any = CHAT, path: str = "/v1/chat/completions", **headers: str
    ) -> tuple[int, Any]:
        """One call; `key` is shown unless other headers are given."""
        shown = headers or {"authorization": f"Bearer {self.key}"}
        shown = {"host": HOST} | {name.replace("_", "-"): text for name, text in shown.items()}
        method = "GET" if body is None else "POST"
        async with self.session.request(
            method, self.gateway.url + path, json=body, headers=shown
        ) as answer:
            return answer.status, await answer.json()


@pytest.fixture
async def door(serve: Serve, tmp_path: Path, scripted: ScriptedProvider) -> AsyncIterator[Door]:
    root = tmp_path / "m"
    root.mkdir()
    url = f"unix://{root}/programs.sock"
    async with a_house(root, f"sqlite:///{root}/meter.db", programs_listen=url) as house:
        await house.connect(scripted)
        gateway = await serve(settings=settings_for(tmp_path, meter_programs_url=url))
        await gateway.person("ada@example.org")
        owner = await gateway.tenant_of("ada@example.org")
        made = await house.client.create_api_key(owner, wire.ApiKeyRequest(name="laptop"))
        async with aiohttp.ClientSession() as session:
            yield Door(gateway, house, owner, made.key, session)


async def _entries(door: Door, count: int = 1) -> list[dict[str, Any]]:
    async def found() -> list[dict[str, Any]]:
        rows = await door.house.rows("SELECT * FROM entry")
        return rows if len(rows) == count else []

    return await until(found, what="settled entries")


async def test_program_is_answered_and_its_tenant_charged_though_no_assistant_is_awake(
    door: Door, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text("Hello ", "there").using(100, 50))
    client = openai.AsyncOpenAI(
        api_key=door.key,
        base_url=f"{door.gateway.url}/v1",
        default_headers={"host": HOST, "cookie": "alcove=theirs"},
        max_retries=0,
    )
    async with client:
        stream = await client.chat.completions.create(**CHAT, stream=True)  # type: ignore[call-overload]
        words = [c.choices[0].delta.content or "" async for c in stream if c.choices]
    assert "".join(words) == "Hello there"
    [entry] = await _entries(door)
    assert (entry["account"], entry["charge_nanos"]) == (door.owner, 200_000)
    [sent] = scripted.model_requests
    assert "cookie" not in sent.headers
    assert door.key not in str(sent.headers)


async def test_packed_body_is_refused_by_name(door: Door, scripted: ScriptedProvider) -> None:
    headers = {"authorization": f"Bearer {door.key}", "content_encoding": "gzip"}
    status, told = await door.ask(**headers)
    assert (status, told["error"]["code"]) == (400, "content_encoding")
    assert scripted.model_requests == []


@pytest.mark.parametrize("path", ["/chat/completions", "/messages", "/models"])
async def test_base_url_without_its_end_is_told_so(door: Door, path: str) -> None:
    status, told = await door.ask(None if path == "/models" else CHAT, path)
    assert (status, told["error"]["details"]) == (404, {"reason": "base_url"})
    assert "/v1" in told["error"]["message"]
    status, told = await door.ask(path=path, accept="application/json")  # a page's, not a program's
    assert told["error"]["details"] != {"reason": "base_url"}


async def test_meters_own_date_is_left_to_the_port_to_say(
    door: Door, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text("Hello").using(10, 5))
    shown = {"host": HOST, "authorization": f"Bearer {door.key}"}
    url = f"{door.gateway.url}/v1/chat/completions"
    async with door.session.post(url, json=CHAT, headers=shown) as answer:
        assert answer.status == 200
        assert "date" not in answer.headers  # the tests' port says none, so a second one would show


async def test_refusal_says_what_to_do(door: Door) -> None:
    for body, words in (
        (CHAT | {"model": "nonesuch"}, "GET /v1/models lists those that there are"),
        (CHAT | {"funny": 1}, "leave it out"),
    ):
        status, told = await door.ask(body)
        assert status == 400
        assert told["error"]["message"].endswith(words)
    status, told = await door.ask(path="/v1/messages", authorization=f"Bearer {door.key}")
    assert "it speaks openai chat" in told["error"]["message"]


async def test_page_of_keys_names_a_model_to_begin_with(door: Door) -> None:
    page = await (await door.gateway.person("bob@example.org")).visit("/account/keys")
    assert '<dd class="mono">smollm2</dd>' in page.text
    assert "/v1/models</dd>" in page.text


async def test_every_wire_of_the_meter_is_spoken(door: Door, scripted: ScriptedProvider) -> None:
    await door.house.connect(scripted, "anthropic_compatible")
    scripted.then(reply=s.text("Good day").using(10, 5))
    client = anthropic.AsyncAnthropic(
        api_key=door.key, base_url=door.gateway.url, default_headers={"host": HOST}, max_retries=0
    )
    async with client:
        said = await client.messages.create(
            model=f"scripted-2/{MODEL}",
            max_tokens=50,
            messages=[{"role": "user", "content": "hi"}],
        )
    assert said.content[0].type == "text"
    assert said.content[0].text == "Good day"
    status, models = await door.ask(None, "/v1/models")
    assert status == 200
    assert f"scripted/{MODEL}" in [model["id"] for model in models["data"]]


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/v1/chat/completions", lambda said: said["error"]["code"]),
        ("/v1/messages", lambda said: said["error"]["alcove_reason"]),
    ],
)
async def test_unknown_key_is_refused_in_the_callers_own_shape(
    door: Door, path: str, error: Any
) -> None:
    status, said = await door.ask(path=path, authorization="Bearer alcove-key-of-nobody")
    assert (status, error(said)) == (401, "key")
    assert (await door.ask(path=path, accept="*/*"))[0] == 401


async def test_assistants_own_key_opens_nothing_from_outside(
    door: Door, scripted: ScriptedProvider
) -> None:
    tenant = await door.house.generation(door.owner, 1)
    assert (await door.ask(authorization=f"Bearer {tenant.key}"))[0] == 401
    scripted.then(reply=s.text("x"))
    assert (await tenant.chat()).status == 200, "at its own socket the key is known"


async def test_revoked_key_opens_nothing(door: Door, scripted: ScriptedProvider) -> None:
    [key] = await door.house.client.api_keys(door.owner)
    await door.house.client.revoke_api_key(door.owner, key.id)
    assert (await door.ask())[0] == 401
    assert scripted.model_requests == []


@pytest.mark.parametrize("path", ["/v1/nothing", "/connections/x/y", "/v1/../admin/tenants"])
async def test_nothing_but_models_is_behind_the_door(door: Door, path: str) -> None:
    status, _ = await door.ask(path=path)
    assert status in (400, 403, 404)


async def test_page_of_another_site_cannot_call_with_the_persons_session(door: Door) -> None:
    ada = await door.gateway.browser().sign_in("ada@example.org")
    assert ada.status == 303
    browser = door.gateway.browsers[-1]
    answer = await browser.send(
        "POST", "/v1/chat/completions", json=CHAT, headers={"origin": "https://evil.example"}
    )
    assert answer.status == 401
    host = await door.session.post(
        f"{door.gateway.url}/v1/chat/completions",
        json=CHAT,
        headers={"authorization": f"Bearer {door.key}", "host": "evil.example"},
    )
    assert host.status == 400


async def test_body_of_a_stranger_is_not_waited_for(door: Door) -> None:
    port = URL(door.gateway.url).port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: {HOST}\r\n"
        "authorization: Bearer alcove-key-of-nobody\r\ncontent-length: 30000000\r\n\r\n"
    )
    writer.write(head.encode())
    await writer.drain()
    line = await asyncio.wait_for(reader.readline(), 5)
    assert b"401" in line
    writer.close()


async def test_meter_hears_of_it_when_the_program_leaves(
    door: Door, scripted: ScriptedProvider
) -> None:
    gate = s.Gate()
    scripted.then(reply=s.text("one ", gate, "two").using(10, 5))
    shown = {"authorization": f"Bearer {door.key}", "host": HOST}
    async with door.session.post(
        f"{door.gateway.url}/v1/chat/completions", json={**CHAT, "stream": True}, headers=shown
    ) as answer:
        assert answer.headers["x-accel-buffering"] == "no", "proxies in front hold no word back"
        while b"one" not in await answer.content.readuntil(b"\n\n"):
            pass
        answer.close()
    programs = door.house.meter.programs
    await until(lambda: programs.callers == 0, what="the gateway's leaving")
    gate.open()
    [entry] = await _entries(door)
    assert entry["outcome"] == "left"


async def test_too_many_calls_at_once_are_refused(serve: Serve, tmp_path: Path) -> None:
    url = f"unix://{tmp_path}/nobody.sock"
    gateway = await serve(settings=settings_for(tmp_path, meter_programs_url=url), program_calls=0)
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{gateway.url}/v1/chat/completions", json=CHAT, headers={"host": HOST, "api-key": "k"}
        ) as answer,
    ):
        assert answer.status == 503
        assert "too many programs call at once" in await answer.text()


async def test_door_is_not_there_when_the_settings_name_none(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    assert "The public door for programs is closed" in (await ada.visit("/account/keys")).text
    answer = await gateway.browser().send(
        "POST", "/v1/chat/completions", json=CHAT, headers={"api-key": "k", "origin": ORIGIN}
    )
    assert answer.status == 404
