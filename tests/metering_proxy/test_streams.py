"""What the provider sends is what the caller gets, byte for byte, but for the usage chunk that we asked for."""

import hashlib
import json

import pytest

from tests import scripted as s
from tests.metering_proxy.house import House, Tenant
from tests.scripted import Reply, ScriptedProvider

_TEXT = ("Grüße, ", "日本語 ", "und ein 👩🏽‍🚀.", "\n\ndata: not an event\n")
MANNERS: dict[str, Reply] = {
    "plain": s.text(*_TEXT),
    "runes cut": s.text(*_TEXT).cutting_runes(),
    "byte by byte": s.text(*_TEXT).byte_by_byte(),
    "crlf": s.text(*_TEXT).with_crlf(),
    "crlf byte by byte": s.text(*_TEXT).with_crlf().byte_by_byte(),
    "comments": s.text(*_TEXT).with_comments().byte_by_byte(),
    "tools": s.calls("Let me look. ", s.call("clock", zone="UTC")),
    "long line": s.calls(s.call("write", text="x" * 70_000)),
    "usage in every chunk": s.text(*_TEXT).with_usage_in_every_chunk(),
    "no end": s.text(*_TEXT).without_end(),
}


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _sent(scripted: ScriptedProvider) -> bytes:
    return b"".join(scripted.requests[-1].sent)


@pytest.mark.thorough
@pytest.mark.parametrize("manner", MANNERS)
async def test_openai_stream_is_the_same_bytes_when_the_caller_asked_for_usage(
    house: House, tenant: Tenant, scripted: ScriptedProvider, manner: str
) -> None:
    scripted.then(reply=MANNERS[manner].using(120, 9))
    asked = {"include_usage": True}
    answer = await tenant.chat(stream=True, stream_options=asked)
    assert (answer.status, answer.cut) == (200, False)
    assert _sha(answer.body) == _sha(_sent(scripted))
    [entry] = await house.entries(tenant)
    assert (entry["input_tokens"], entry["output_tokens"]) == (120, 9)
    assert entry["charge_nanos"] == 120 * 1_000 + 9 * 2_000


@pytest.mark.thorough
@pytest.mark.parametrize("manner", MANNERS)
async def test_only_our_usage_chunk_is_missing_when_the_caller_did_not_ask(
    house: House, tenant: Tenant, scripted: ScriptedProvider, manner: str
) -> None:
    scripted.then(reply=MANNERS[manner].using(120, 9))
    answer = await tenant.chat(stream=True)
    assert answer.status == 200
    sent = _sent(scripted)
    end = b"\r\n\r\n" if b"\r\n" in sent else b"\n\n"
    ours = [
        event + end
        for event in sent.split(end)
        if event.removeprefix(b": SCRIPTED PROCESSING" + end).startswith(b"data: {")
        and not json.loads(event.removeprefix(b"data: ")).get("choices")
    ]
    assert len(ours) == 1
    assert _sha(answer.body) == _sha(sent.replace(ours[0], b""))
    [entry] = await house.entries(tenant)
    assert (entry["input_tokens"], entry["output_tokens"], entry["estimated"]) == (120, 9, 0)


@pytest.mark.parametrize("manner", MANNERS)
async def test_anthropic_stream_is_the_same_bytes(
    house: House, anthropic_tenant: Tenant, scripted: ScriptedProvider, manner: str
) -> None:
    scripted.then(reply=MANNERS[manner].using(120, 9))
    answer = await anthropic_tenant.message(stream=True)
    assert (answer.status, answer.cut) == (200, False)
    assert _sha(answer.body) == _sha(_sent(scripted))
    [entry] = await house.entries(anthropic_tenant)
    assert (entry["input_tokens"], entry["output_tokens"], entry["estimated"]) == (120, 9, 0)


async def test_whole_answers_are_the_same_bytes(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text(*_TEXT).using(7, 3, cache_read=5))
    answer = await tenant.chat()
    assert answer.body == _sent(scripted)
    [entry] = await house.entries(tenant)
    assert (entry["input_tokens"], entry["cache_read_tokens"], entry["output_tokens"]) == (7, 5, 3)


async def test_first_words_arrive_when_the_rest_is_still_to_come(
    tenant: Tenant, scripted: ScriptedProvider
) -> None:
    gate = s.Gate()
    scripted.then(reply=s.text("first ", gate, "second"))
    body = {"model": "default", "stream": True, "messages": [{"role": "user", "content": "x"}]}
    async with tenant.session.post(
        "http://localhost/v1/chat/completions",
        json=body,
        headers={"authorization": f"Bearer {tenant.key}"},
    ) as response:
        seen = b""
        while b"first" not in seen:
            seen += await response.content.readany()
        assert b"second" not in seen
        gate.open()
        seen += await response.content.read()
        assert b"second" in seen


async def test_request_is_changed_in_four_places_only(
    tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text("ok"))
    raw = (
        b'{ "messages" : [ {"role":"user","content":"caf\\u00e9 \xe6\x97\xa5"} ] ,\n'
        b'  "model":"default", "temperature": 0.70, "min_p": 1E-2,\t"stream" :true,'
        b'"stream_options": {"include_obfuscation":false} }'
    )
    await tenant.post("/v1/chat/completions", raw, user_agent="agent/1", x_secret="no")
    sent = scripted.requests[-1]
    expected = (
        raw.replace(b'"default"', b'"scripted-model"')
        .replace(b'{"include_obf', b'{"include_usage":true,"include_obf')
        .replace(b'{ "mess', b'{"max_tokens":1000, "mess')
    )
    assert sent.body == expected
    assert sent.headers["authorization"] == "Bearer sk-provider-key-1234"
    assert tenant.key not in str(sent.headers)
    assert "x-secret" not in sent.headers
    assert sent.headers["user-agent"] == "agent/1"
