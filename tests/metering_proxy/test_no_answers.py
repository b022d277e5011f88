"""An error, a page or nothing with a status of 200: a failure on every wire, whatever its status says."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from metering_proxy import wire
from metering_proxy.providers.breakers import FAILURES
from metering_proxy.wires import paths
from tests import scripted as s
from tests.metering_proxy import recordings
from tests.metering_proxy.house import MODEL, ROW, House, Tenant, a_house
from tests.scripted import Reply, ScriptedProvider, serve

pytestmark = pytest.mark.thorough

_ERROR = {"error": {"code": 502, "message": "Provider returned error"}}
_BROKEN_CHOICE = {"choices": [{"finish_reason": "error", "message": {"content": ""}}]}
_OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
_RESPONSE_ERROR = {"status": "completed", "output": [], "error": {"code": "server_error"}}
_PAGE = b"<!DOCTYPE html><html>busy</html>"
_USED = {"prompt_tokens": 20, "completion_tokens": 5}


def _json(answer: Any) -> bytes:
    return json.dumps(answer).encode()


@pytest.mark.parametrize(
    ("name", "body"),
    [
        *[
            (name, body)
            for name in sorted(set(paths.WIRES) - {"anthropic_count_tokens"})
            for body in (_json(_ERROR), _PAGE)
        ],
        *[
            (name, body)
            for name in sorted(paths.WIRES)
            if name.startswith(("openai_chat", "openai_emb", "openai_im", "openai_resp", "gemini"))
            or name == "anthropic_messages"
            for body in (b"", b"{", b"{}", b"null", b'"words"', _json({"detail": "no"}))
        ],
        ("openai_chat", _json(_BROKEN_CHOICE)),
        ("openai_chat", _json({"choices": [{"message": {}, "error": {"code": 502}}]})),
        ("anthropic_messages", _json(_OVERLOADED)),
        ("openai_responses", _json(_RESPONSE_ERROR)),
        ("openai_responses", _json({"status": "failed", "output": []})),
    ],
)
def test_whole_answer_that_is_none_has_failed(name: str, body: bytes) -> None:
    reader = paths.WIRES[name].reader()
    reader.whole(body)
    assert reader.found.failed
    assert not (reader.found.usage and reader.found.usage.total)


def test_chunk_whose_choice_ends_in_an_error_has_failed() -> None:
    reader = paths.WIRES["openai_chat"].reader()
    reader.event(_json({"choices": [{"delta": {"content": "x"}, "finish_reason": "error"}]}))
    assert reader.found.failed


_NONE = [
    ("error", s.recorded(_json(_ERROR), "application/json")),
    ("choice", s.recorded(_json(_BROKEN_CHOICE), "application/json")),
    ("page", s.recorded(_PAGE, "text/html")),
    ("long page", s.recorded(_PAGE.ljust(30_000), "text/html")),
    ("empty", s.recorded(b"", "application/json")),
    ("empty stream", s.recorded(b"")),
    ("only comments", s.recorded(b": busy\n\n: busy\n\n")),
    ("no events", s.recorded(_json(_ERROR))),
    ("no content", Reply(status=204, body=b"")),
]
_EACH = pytest.mark.parametrize("reply", [r for _, r in _NONE], ids=[name for name, _ in _NONE])


@_EACH
@pytest.mark.parametrize("stream", [True, False])
async def test_no_answer_is_passed_on_as_it_is_and_costs_nothing(
    house: House, tenant: Tenant, scripted: ScriptedProvider, reply: Reply, stream: bool
) -> None:
    scripted.then(reply=reply)
    answer = await tenant.chat("hello " * 100, stream=stream)
    assert answer.status == reply.status
    assert (answer.body, answer.cut) == (reply.recorded or b"", False)
    [entry] = await house.entries(tenant)
    assert (entry["outcome"], entry["charge_nanos"], entry["estimated"]) == ("error", 0, 1)
    assert (await house.verdict()).whole


@pytest.fixture
async def second() -> AsyncIterator[ScriptedProvider]:
    """A provider that answers in the place of another one."""
    async with serve(ScriptedProvider()) as provider:
        yield provider
        provider.verify()


@_EACH
@pytest.mark.parametrize("stream", [True, False])
async def test_next_provider_answers_in_the_place_of_no_answer(
    house: House, scripted: ScriptedProvider, second: ScriptedProvider, reply: Reply, stream: bool
) -> None:
    for name, url in (("first", scripted.url), ("second", second.url)):
        new = wire.NewProvider(kind="openai_compatible", name=name, base_url=url, models=[ROW])
        await house.client.create_provider(new)
    await house.client.put_fallback(f"first/{MODEL}", [f"second/{MODEL}"])
    tenant = await house.tenant()
    scripted.then(reply=reply)
    second.then(reply=s.text("from the second").using(20, 5))
    answer = await tenant.chat(model=f"first/{MODEL}", stream=stream)
    assert b"from the second" in answer.body
    failed, answered = await house.entries(tenant, 2)
    assert (failed["kind"], failed["outcome"], failed["charge_nanos"]) == ("attempt", "error", 0)
    assert answered["charge_nanos"] == 20 * 1_000 + 5 * 2_000


async def test_failure_that_tells_its_usage_costs_that(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=Reply(body={**_BROKEN_CHOICE, "usage": _USED}))
    await tenant.chat()
    [entry] = await house.entries(tenant)
    assert (entry["outcome"], entry["estimated"]) == ("error", 0)
    assert entry["charge_nanos"] == 20 * 1_000 + 5 * 2_000


async def test_breaker_counts_answers_that_are_none(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    for _ in range(FAILURES):
        scripted.then(reply=Reply(body=_ERROR))
        assert (await tenant.chat()).status == 200
    answer = await tenant.chat()
    assert (answer.status, answer.headers["x-alcove-reason"]) == (503, "provider_resting")
    await house.entries(tenant, FAILURES)


@pytest.mark.parametrize(
    ("kind", "path", "body", "answer"),
    [
        ("anthropic_compatible", "/v1/messages", {"messages": "", "max_tokens": 9}, _OVERLOADED),
        ("openai_compatible", "/v1/embeddings", {"input": "hi"}, _ERROR),
        ("openai_compatible", "/v1/responses", {"input": "hi"}, _RESPONSE_ERROR),
        ("google", f"/v1beta/models/{MODEL}:generateContent", {"contents": []}, _ERROR),
        ("google", f"/v1beta/models/{MODEL}:streamGenerateContent", {"contents": []}, _ERROR),
    ],
)
async def test_error_in_a_good_answer_costs_nothing_on_any_wire(
    tmp_path: Path,
    scripted: ScriptedProvider,
    kind: Any,
    path: str,
    body: dict[str, Any],
    answer: dict[str, Any],
) -> None:
    scripted.checks_invariants = False
    said = {
        "messages": [{"role": "user", "content": "hi"}],
        "contents": [{"parts": [{"text": "hi"}]}],
    }
    asked = {name: said.get(name, value) for name, value in body.items()}
    if kind != "google":
        asked["model"] = MODEL
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/m.db") as house:
        row = ROW.model_copy(update={"kind": "embedding" if "embeddings" in path else "chat"})
        new = wire.NewProvider(
            kind=kind, name="S", base_url=scripted.url, key="k" * 12, models=[row]
        )
        await house.client.create_provider(new)
        tenant = await house.tenant()
        wanted = s.on_wire("embeddings") if "embeddings" in path else s.anything
        scripted.then(wanted, reply=s.recorded(_json(answer), "application/json"))
        got = await tenant.post(path, asked)
        assert (got.status, got.body) == (200, _json(answer))
        [entry] = await house.entries(tenant)
        assert (entry["outcome"], entry["charge_nanos"]) == ("error", 0)


@pytest.mark.parametrize("answer", [_json(_ERROR), _PAGE, b""], ids=["error", "page", "empty"])
@pytest.mark.parametrize(
    ("path", "model"), [("/v1/audio/speech", "tts-1"), ("/v1/audio/transcriptions", "whisper-1")]
)
async def test_no_sound_and_no_transcript_costs_nothing(
    house: House, scripted: ScriptedProvider, path: str, model: str, answer: bytes
) -> None:
    await house.connect(scripted, "openai")
    tenant = await house.tenant("plus")
    scripted.then(reply=s.recorded(answer, "application/json"))
    body: Any = {"model": model, "input": "hi", "voice": "alloy"}
    kept = {}
    if "transcriptions" in path:
        body, kept = recordings.form(recordings.wav(1)), {"content_type": recordings.FORM_TYPE}
    assert (await tenant.post(path, body, **kept)).body == answer
    [entry] = await house.entries(tenant)
    assert (entry["outcome"], entry["charge_nanos"]) == ("error", 0)
