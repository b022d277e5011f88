"""Every fault of a provider on every wire: the same bytes to the caller, one settlement, nothing held."""

import gzip
import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra.kit.relay import Timeouts
from tests import scripted as s
from tests.metering_proxy.goldens import ASKED as GOLDEN_ASKED
from tests.metering_proxy.goldens import GOLDENS
from tests.metering_proxy.house import MODEL, House, Tenant, a_house
from tests.scripted import Reply, ScriptedProvider

_SAID = [{"role": "user", "content": "hi"}]
_TOLD = {"stream_options": {"include_usage": True}}
_WIRES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "chat": (
        "openai_compatible",
        "/v1/chat/completions",
        {"model": MODEL, "messages": _SAID, "stream": True, **_TOLD},
    ),
    "messages": (
        "anthropic_compatible",
        "/v1/messages",
        {"model": MODEL, "max_tokens": 900, "messages": _SAID, "stream": True},
    ),
    "responses": (
        "openai_compatible",
        "/v1/responses",
        {"model": MODEL, "input": "hi", "stream": True},
    ),
    "gemini": (
        "google",
        f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse",
        {"contents": [{"parts": [{"text": "hi"}]}]},
    ),
}
_WORDS = s.text("Grüße ", "aus 日本語 ", "und ein 🙂").using(20, 9)
_LONG = s.text("x" * 70_000).using(20, 9)
Make = Callable[[s.Gate], Reply]
# Fault → how the provider answers, how the call ended, whether it is charged by estimate, whether it is cut.
_FAULTS: dict[str, tuple[Make, str, int, bool]] = {
    "none": (lambda _: _WORDS, "complete", 0, False),
    "reset": (lambda _: _WORDS.dropped_after(len("data: ") * 60), "cut", 1, True),
    "silence": (lambda gate: s.text("some words ", gate), "cut", 1, True),
    "error after 200": (lambda _: s.text("some words ", s.StreamError()), "error", 1, False),
    "no usage": (lambda _: _WORDS.without_usage(), "complete", 1, False),
    "absurd usage": (lambda _: _WORDS.using(10**7, 10**7), "complete", 0, False),
    "cut runes": (lambda _: _WORDS.cutting_runes(), "complete", 0, False),
    "byte by byte": (lambda _: _WORDS.byte_by_byte(), "complete", 0, False),
    "CRLF": (lambda _: _WORDS.with_crlf(), "complete", 0, False),
    "comments": (lambda _: _WORDS.with_comments(), "complete", 0, False),
    "a line of 70 kB": (lambda _: _LONG, "complete", 0, False),
    "usage in every chunk": (lambda _: _WORDS.with_usage_in_every_chunk(), "complete", 0, False),
}


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.thorough
@pytest.mark.parametrize("wire", _WIRES)
async def test_every_fault_is_settled_once_and_its_bytes_are_the_providers(
    tmp_path: Path, scripted: ScriptedProvider, wire: str
) -> None:
    kind, path, body = _WIRES[wire]
    quick, gate = Timeouts(first_byte_s=10, idle_s=0.5), s.Gate()
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/m.db", timeouts=quick) as house:
        await house.connect(scripted, kind)
        for fault, (make, outcome, estimated, cut) in _FAULTS.items():
            tenant = await house.tenant("plus", charge_month_nanos=None)
            scripted.then(reply=make(gate))
            answer = await tenant.post(path, body)
            assert (answer.status, answer.cut) == (200, cut), fault
            assert _sha(answer.body) == _sha(b"".join(scripted.requests[-1].sent)), fault
            [entry] = await house.entries(tenant)
            assert (entry["outcome"], entry["estimated"]) == (outcome, estimated), fault
            if fault == "absurd usage":
                assert (entry["overrun"], entry["output_tokens"]) == (1, 10**7)
            elif not estimated:
                assert (entry["input_tokens"], entry["output_tokens"]) == (20, 9), fault
        states = await house.rows("SELECT state FROM reservation")
        assert [row["state"] for row in states] == ["settled"] * len(_FAULTS)
        assert (await house.verdict()).whole
    gate.open()


@pytest.mark.thorough
async def test_stream_may_last_as_long_as_its_bytes_keep_coming(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    slow = [part for n in range(8) for part in (f"{n} ", s.Delay(0.25))]
    scripted.then(reply=s.text(*slow).using(20, 9))
    quick = Timeouts(connect_s=0.6, first_byte_s=0.6, idle_s=0.6)
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/m.db", timeouts=quick) as house:
        await house.connect(scripted)
        tenant = await house.tenant()
        answer = await tenant.chat(stream=True)
        assert (answer.status, answer.cut) == (200, False)
        [entry] = await house.entries(tenant)
        assert (entry["outcome"], entry["output_tokens"]) == ("complete", 9)


def _deflated(data: bytes) -> bytes:
    return zlib.compress(data)


_PACKED = [golden for golden in GOLDENS if golden.usage and golden.outcome == "complete"]


@pytest.mark.parametrize(("coding", "pack"), [("gzip", gzip.compress), ("deflate", _deflated)])
async def test_packed_stream_is_passed_on_packed_and_read(
    tmp_path: Path, scripted: ScriptedProvider, coding: str, pack: Any
) -> None:
    of_each_wire = {golden.wire: golden for golden in _PACKED}
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/m.db") as house:
        for golden in of_each_wire.values():
            connection = await house.connect(scripted, golden.kind)
            tenant, packed = await house.tenant(), pack(golden.body)
            reply = s.recorded(packed, golden.content_type).with_headers(
                **{"content-encoding": coding}
            )
            scripted.then(reply=reply)
            status, body = await _raw(tenant, *GOLDEN_ASKED[golden.wire])
            assert (status, _sha(body)) == (200, _sha(packed)), golden.name
            assert scripted.requests[-1].headers["accept-encoding"] == "gzip"
            [entry] = await house.entries(tenant)
            assert (entry["outcome"], entry["estimated"]) == ("complete", 0), golden.name
            assert entry["output_tokens"] == golden.found.total - golden.found.total_input
            await house.client.delete_provider(connection)


async def _raw(tenant: Tenant, path: str, body: Any) -> tuple[int, bytes]:
    """The answer's bytes as they come, packed or not."""
    shown = {"authorization": f"Bearer {tenant.key}", "accept-encoding": "gzip, br"}
    session = tenant.session
    async with session.request(
        "POST", f"http://localhost{path}", json=body, headers=shown, auto_decompress=False
    ) as answer:
        return answer.status, await answer.read()


async def test_packing_that_cannot_be_read_is_passed_on_and_charged_by_estimate(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    for coding, body in (("br", b"\x0b\x02\x80x\x03"), ("gzip", b"no gzip at all")):
        scripted.then(
            reply=s.recorded(body, "text/event-stream").with_headers(**{"content-encoding": coding})
        )
        asked = {"model": MODEL, "messages": _SAID, "stream": True, **_TOLD}
        assert await _raw(tenant, "/v1/chat/completions", asked) == (200, body)
    entries = await house.entries(tenant, 2)
    assert [entry["estimated"] for entry in entries] == [1, 1]
    told = [(e["output_tokens"], e["charge_nanos"] - 1_000 * e["input_tokens"]) for e in entries]
    assert told == [(2, 2 * 2_000), (4, 4 * 2_000)]  # a quarter of the bytes passed on
    registry = house.meter.metrics.registry
    assert registry.get_sample_value("meter_stream_parse_errors_total") == 2
    assert (await house.verdict()).whole
