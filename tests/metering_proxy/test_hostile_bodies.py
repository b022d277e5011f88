"""What a caller sends to break the meter: answered with a clear 4xx, soon, in memory that stays as it is."""

import asyncio
import gc
import io
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra.kit import httpd, unix
from infra.kit.errors import AlcoveError
from metering_proxy.wires import document, forms
from metering_proxy.wires.openai_chat import OpenAiChat
from tests import scripted as s
from tests.metering_proxy.house import MODEL, House, Tenant, a_house
from tests.scripted import ScriptedProvider
from tests.waiting import until

MIB = 1 << 20
CHAT: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
MESSAGE = {**CHAT, "max_tokens": 100}
RESPONSE = {"model": MODEL, "input": "hi"}
EMBEDDING = {"model": MODEL, "input": "hi"}
PICTURE = {"model": MODEL, "prompt": "a house"}
CONTENTS = {"contents": [{"parts": [{"text": "hi"}]}]}
_CHAT, _MESSAGES, _RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
_GEMINI = f"/v1beta/models/{MODEL}:generateContent"


def _thinking(budget: Any) -> dict[str, Any]:
    return {"max_tokens": 2_000, "thinking": {"type": "enabled", "budget_tokens": budget}}


def _config(**values: Any) -> dict[str, Any]:
    return {"generationConfig": values}


# Path, the body's sound part, the unsound one, and the field that the answer names.
WRONG: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    (_CHAT, CHAT, {"max_tokens": "100"}, "max_tokens"),
    (_CHAT, CHAT, {"max_tokens": 1.5}, "max_tokens"),
    (_CHAT, CHAT, {"max_tokens": True}, "max_tokens"),
    (_CHAT, CHAT, {"max_tokens": -1}, "max_tokens"),
    (_CHAT, CHAT, {"max_tokens": 0}, "max_tokens"),
    (_CHAT, CHAT, {"max_tokens": 2**63}, "max_tokens"),
    (_CHAT, CHAT, {"max_completion_tokens": [100]}, "max_completion_tokens"),
    (_CHAT, CHAT, {"max_completion_tokens": {}}, "max_completion_tokens"),
    (_CHAT, CHAT, {"max_completion_tokens": 1e3}, "max_completion_tokens"),
    (_CHAT, CHAT, {"n": "1"}, "n"),
    (_CHAT, CHAT, {"n": 0}, "n"),
    (_CHAT, CHAT, {"n": 10**9}, "n"),
    (_CHAT, CHAT, {"stream": 1}, "stream"),
    (_CHAT, CHAT, {"stream": True, "stream_options": {"include_usage": 1}}, "include_usage"),
    (_MESSAGES, MESSAGE, {"max_tokens": None}, "max_tokens"),
    (_MESSAGES, MESSAGE, {"max_tokens": "100"}, "max_tokens"),
    (_MESSAGES, MESSAGE, {"max_tokens": 0.5}, "max_tokens"),
    (_MESSAGES, MESSAGE, {"max_tokens": False}, "max_tokens"),
    (_MESSAGES, MESSAGE, _thinking("1024"), "budget_tokens"),
    (_MESSAGES, MESSAGE, _thinking(-1), "budget_tokens"),
    (_MESSAGES, MESSAGE, _thinking(1024.5), "budget_tokens"),
    (_MESSAGES, MESSAGE, {"stream": "yes"}, "stream"),
    (_RESPONSES, RESPONSE, {"max_output_tokens": "9"}, "max_output_tokens"),
    (_RESPONSES, RESPONSE, {"max_output_tokens": -9}, "max_output_tokens"),
    (_RESPONSES, RESPONSE, {"max_tool_calls": 0.5, "tools": [{"type": "web_search"}]}, "max_tool_calls"),
    (_RESPONSES, RESPONSE, {"stream": []}, "stream"),
    ("/v1/embeddings", EMBEDDING, {"dimensions": "3"}, "dimensions"),
    ("/v1/embeddings", EMBEDDING, {"dimensions": -3}, "dimensions"),
    ("/v1/images/generations", PICTURE, {"n": "2"}, "n"),
    ("/v1/images/generations", PICTURE, {"n": 10_000}, "n"),
    ("/v1/images/generations", PICTURE, {"partial_images": -1}, "partial_images"),
    (_GEMINI, CONTENTS, _config(maxOutputTokens="5"), "maxOutputTokens"),
    (_GEMINI, CONTENTS, _config(maxOutputTokens=-5), "maxOutputTokens"),
    (_GEMINI, CONTENTS, _config(candidateCount=1.5), "candidateCount"),
]  # fmt: skip


def test_table_has_thirty_rows() -> None:
    assert len(WRONG) >= 30


async def test_wrong_type_is_400_and_names_its_field(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    for path, sound, unsound, field in WRONG:
        answer = await tenant.post(path, {**sound, **unsound})
        assert answer.status == 400, (path, unsound)
        assert answer.headers["x-alcove-reason"] == "invalid_request", (path, unsound)
        assert field in answer.body.decode(), (path, unsound)
    assert scripted.requests == []
    assert await house.rows("SELECT * FROM reservation") == []


HEAD = b'{"model":"scripted-model","messages":[{"role":"user","content":"hi"}],"x":'
# Made when a test asks: all of them together are 140 MiB.
HOSTILE: dict[str, Callable[[], bytes]] = {
    "arrays 100,000 deep": lambda: HEAD + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "objects 100,000 deep": lambda: HEAD + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
    "unclosed": lambda: HEAD + b"[{" * 100_000,
    "30 MiB of numbers": lambda: HEAD + b"[" + b"1.25," * (6 * MIB) + b"1]}",
    "30 MiB of arrays": lambda: HEAD + b"[" + b"[]," * (10 * MIB) + b"1]}",
    "30 MiB of objects": lambda: HEAD + b"[" + b"{}," * (10 * MIB) + b"1]}",
    "two million members": lambda: b"{" + b",".join(b'"%d":1' % n for n in range(2_000_000)) + b"}",
    "a number of 30 MiB": lambda: HEAD + b"9" * (30 * MIB) + b"}",
    "a member twice": lambda: HEAD + b'1,"model":"dear"}',
    "a member of a member twice": lambda: HEAD
    + b'1,"stream":true,"stream_options":{"include_usage":true,"include_usage":1}}',
    "a part that is a picture and a text": lambda: HEAD.replace(
        b'"hi"', b'[{"type":"image_url","type":"text","text":"x"}]'
    )
    + b"1}",
    "a tool of two kinds": lambda: HEAD
    + b'1,"tools":[{"type":"web_search","type":"function","function":{"name":"f"}}]}',
    "a member twice, once in escapes": lambda: HEAD.replace(b'"role"', b'"content":"","\\u0063ontent"')
    + b"1}",
    "not UTF-8": lambda: HEAD + b'"\xff"}',
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_body_is_refused_soon_whatever_it_is(name: str) -> None:
    body = HOSTILE[name]()
    began = time.thread_time()
    with pytest.raises(AlcoveError) as caught:
        OpenAiChat().read(body)
    assert caught.value.code == "invalid"
    assert time.thread_time() - began < 1.0


def test_form_is_refused_soon_when_its_head_never_ends() -> None:
    body = b"--b\r\n" + b"ab\r\n" * (6 * MIB) + b"\r\n\r\nx\r\n--b--"
    began = time.thread_time()
    with pytest.raises(AlcoveError):
        forms.read(body, "multipart/form-data; boundary=b")
    assert time.thread_time() - began < 1.0


def test_long_text_is_no_hostile_body() -> None:
    text = json.dumps({"model": "m", "messages": ["Dear reader, [see below]: {this}. " * 100_000]})
    assert len(text) > 3 * MIB
    assert document.read(text.encode()).get("model") == "m"


LARGEST = ("30 MiB of numbers", "30 MiB of arrays", "two million members")


async def _status(tenant: Tenant, body: bytes) -> int:
    """What a large chat is answered with."""
    headers = {"authorization": f"Bearer {tenant.key}", "content-type": "application/json"}
    url = f"http://localhost{_CHAT}"
    async with tenant.session.post(url, headers=headers, data=io.BytesIO(body)) as response:
        await response.read()
        return response.status


def _rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.thorough
async def test_memory_stays_flat_over_a_thousand_bad_calls(house: House, tenant: Tenant) -> None:
    small = [(path, json.dumps({**sound, **unsound}).encode()) for path, sound, unsound, _ in WRONG]
    # Kept until the end, so that the heap does not move for them.
    bodies = {name: make() for name, make in HOSTILE.items()}
    large = [(_CHAT, body) for body in bodies.values() if len(body) < MIB]
    calls = [*small, *large]

    async def send(count: int) -> None:
        for number in range(count):
            path, body = calls[number % len(calls)]
            assert 400 <= (await tenant.post(path, body)).status < 500

    # Once each of the largest, so that what follows finds the heap as large as it will ever be.
    for name in LARGEST:
        assert await _status(tenant, bodies[name]) == 400
    await send(200)
    gc.collect()
    before = _rss_bytes()
    await send(1_000)
    for name in LARGEST:
        assert await _status(tenant, bodies[name]) == 400
    gc.collect()
    assert _rss_bytes() - before < 24 * MIB


async def test_bodies_under_way_are_bounded_for_the_process_not_for_each_caller(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    capacity = httpd.Capacity(body_bytes=3 * MIB)
    url = f"sqlite:///{tmp_path}/m.db"
    async with a_house(tmp_path, url, capacity=capacity) as house:
        await house.connect(scripted)
        scripted.always(reply=s.text("x"))
        writers: list[asyncio.StreamWriter] = []
        for tenant in [await house.tenant() for _ in range(2)]:
            _, writer = await unix.open_stream(tenant.socket)
            writers.append(writer)
            head = f"POST {_CHAT} HTTP/1.1\r\nhost: m\r\nauthorization: Bearer {tenant.key}\r\n"
            writer.write(head.encode() + b"content-length: 2000000\r\n\r\n" + b" " * 1_400_000)
        await until(lambda: capacity.body_bytes == 2_800_000)
        late = await house.tenant()
        padded = json.dumps(CHAT).encode() + b" " * 500_000
        answer = await late.post(_CHAT, padded)
        assert (answer.status, answer.headers["x-alcove-reason"]) == (503, "busy")
        assert answer.headers["retry-after"] == "1"
        for writer in writers:
            writer.close()
        await until(lambda: capacity.body_bytes == 0)
        assert (await late.post(_CHAT, padded)).status == 200


async def test_body_that_drips_is_given_up_and_holds_nothing(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    capacity, limits = httpd.Capacity(), httpd.Limits(body_s=0.2)
    url = f"sqlite:///{tmp_path}/m.db"
    async with a_house(tmp_path, url, capacity=capacity, limits=limits) as house:
        await house.connect(scripted)
        tenant = await house.tenant()
        reader, writer = await unix.open_stream(tenant.socket)
        head = f"POST {_CHAT} HTTP/1.1\r\nhost: m\r\nauthorization: Bearer {tenant.key}\r\n"
        writer.write(head.encode() + b"content-length: 2000\r\n\r\n{")
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"x-alcove-reason: slow_body" in answer
        writer.close()
        assert capacity.body_bytes == 0
        assert scripted.requests == []
