"""What cannot be read as it calls itself: read by how it begins, and else estimated from the bytes passed on."""

import contextlib
import gzip
import json
import zlib
from typing import Any

import aiohttp
import pytest

from metering_proxy.tenant_side.tee import Tee, framing_of
from metering_proxy.tenant_side.unpacking import Unpacker
from metering_proxy.wires import paths
from metering_proxy.wires.wire import Found
from tests import scripted as s
from tests.metering_proxy.house import MODEL, House, Tenant
from tests.scripted import Reply, ScriptedProvider

pytestmark = pytest.mark.thorough

_TELL = {"stream": True, "stream_options": {"include_usage": True}}
_USAGE = {"prompt_tokens": 20, "completion_tokens": 9}
_WHOLE = json.dumps({"choices": [{"message": {"content": "hello"}}], "usage": _USAGE}).encode()
_EVENTS = [
    b'data: {"choices":[{"delta":{"content":"hello"}}]}\n\n',
    b"data: " + json.dumps({"choices": [], "usage": _USAGE}).encode() + b"\n\n",
    b"data: [DONE]\n\n",
]
_STREAM = b"".join(_EVENTS)
_EXACTLY = 20 * 1_000 + 9 * 2_000


async def _asked(house: House, tenant: Tenant, **more: Any) -> dict[str, Any]:
    """Asks without unpacking the answer, and gives the entry."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hello " * 20}], **more}
    shown = {"authorization": f"Bearer {tenant.key}", "accept-encoding": "gzip"}
    async with tenant.session.request(
        "POST",
        "http://localhost/v1/chat/completions",
        json=body,
        headers=shown,
        auto_decompress=False,
    ) as answer:
        await answer.read()
    [entry] = await house.entries(tenant)
    assert (await house.verdict()).whole
    return entry


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, br"])
@pytest.mark.parametrize("more", [_TELL, {}], ids=["stream", "whole"])
async def test_packing_that_nobody_reads_costs_its_bytes_and_no_more_than_the_hold(
    house: House, scripted: ScriptedProvider, coding: str, more: dict[str, Any]
) -> None:
    await house.connect(scripted)
    kind = "text/event-stream" if more else "application/json"
    packed = s.recorded(b"\x0b" * 2_048, kind).with_headers(content_encoding=coding)
    for limit, output in ((900, 512), (300, 300)):
        tenant = await house.tenant()
        scripted.then(reply=packed)
        entry = await _asked(house, tenant, max_tokens=limit, **more)
        assert (entry["output_tokens"], entry["estimated"], entry["overrun"]) == (output, 1, 0)
        assert entry["charge_nanos"] == entry["input_tokens"] * 1_000 + output * 2_000


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/x-ndjson", "audio/mpeg"])
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\n\n", b": busy\n\n", b"event: x\n"])
async def test_stream_is_read_as_one_whatever_it_calls_itself(
    house: House, tenant: Tenant, scripted: ScriptedProvider, content_type: str, before: bytes
) -> None:
    scripted.then(reply=s.recorded(before + _STREAM, content_type).byte_by_byte())
    answer = await tenant.chat(**_TELL)
    assert answer.body == before + _STREAM
    [entry] = await house.entries(tenant)
    assert (entry["charge_nanos"], entry["estimated"]) == (_EXACTLY, 0)


def _read(body: bytes, size: int, **how: Any) -> tuple[Found, Tee]:
    reader = paths.WIRES[how.pop("wire", "openai_chat")].reader()
    given = {"framing": "whole", "encoding": "", "strip": False, "sniffs": True, **how}
    tee = Tee(reader, **given)
    out = b"".join(tee.feed(body[at : at + size]) for at in range(0, len(body), size))
    assert out + tee.end() == body
    tee.conclude()
    return reader.found, tee


@pytest.mark.parametrize("size", [1, 3, 7, 10_000])
def test_beginning_tells_how_an_answer_is_cut_however_it_comes(size: int) -> None:
    for body in (_STREAM, b"\r\n" + _STREAM, _WHOLE, b"\n\n\n" + _WHOLE):
        found, tee = _read(body, size)
        assert (found.finished, found.failed, tee.unread, found.unread_bytes) == (
            True,
            False,
            False,
            0,
        )
        assert found.usage is not None
        assert found.usage.total == 29
    for body in (b"{}", b"dat", b"data", b"\n"):
        assert _read(body, size)[0].failed


@pytest.mark.parametrize("size", [1, 10_000])
def test_error_in_the_place_of_an_array_is_seen(size: int) -> None:
    body = b'{"error":{"code":503,"status":"UNAVAILABLE"}}'
    assert _read(body, size, wire="gemini_stream", framing="array")[0].failed


def test_sound_is_only_where_it_was_asked_for() -> None:
    for content_type in ("audio/mpeg", "application/octet-stream"):
        assert framing_of(content_type, array=False) == "whole"
        assert framing_of(content_type, array=False, sound=True) == "sound"


async def test_whole_answer_that_is_cut_costs_the_bytes_that_came(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text("word " * 2_000).using(20, 2_000).dropped_after(2_000))
    answer = await tenant.chat()
    assert (answer.cut, len(answer.body)) == (True, 2_000)
    [entry] = await house.entries(tenant)
    assert (entry["outcome"], entry["estimated"], entry["output_tokens"]) == ("cut", 1, 500)
    assert entry["charge_nanos"] == entry["input_tokens"] * 1_000 + 500 * 2_000


async def test_whole_answer_that_is_cut_behind_its_json_costs_what_it_says(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    reply = s.recorded(_WHOLE + b" " * 50, "application/json").dropped_after(len(_WHOLE))
    scripted.then(reply=reply)
    answer = await tenant.chat()
    assert (answer.cut, answer.body) == (True, _WHOLE)
    [entry] = await house.entries(tenant)
    assert (entry["outcome"], entry["estimated"]) == ("cut", 0)
    assert entry["charge_nanos"] == _EXACTLY


@pytest.mark.parametrize(
    ("body", "more"),
    [
        (b"".join(map(gzip.compress, _EVENTS)), _TELL),
        (gzip.compress(_WHOLE[:30]) + gzip.compress(_WHOLE[30:]), {}),
    ],
    ids=["stream", "whole"],
)
async def test_every_member_of_a_packed_answer_is_read(
    house: House, tenant: Tenant, scripted: ScriptedProvider, body: bytes, more: dict[str, Any]
) -> None:
    kind = "text/event-stream" if more else "application/json"
    scripted.then(reply=s.recorded(body, kind).with_headers(content_encoding="gzip").byte_by_byte())
    entry = await _asked(house, tenant, **more)
    assert (entry["charge_nanos"], entry["estimated"]) == (_EXACTLY, 0)
    registry = house.meter.metrics.registry
    assert not registry.get_sample_value("meter_stream_parse_errors_total")


@pytest.mark.parametrize(
    "reply",
    [
        s.recorded(gzip.compress(b"x" * 99)[:-9]).with_headers(content_encoding="gzip"),
        s.recorded(gzip.compress(b": x\n\n") + b"junk").with_headers(content_encoding="gzip"),
        s.recorded(b"\x0b" * 99).with_headers(content_encoding="br").dropped_after(50),
    ],
    ids=["short", "junk behind", "cut"],
)
async def test_packing_that_breaks_is_counted_and_estimated(
    house: House, tenant: Tenant, scripted: ScriptedProvider, reply: Reply
) -> None:
    scripted.then(reply=reply)
    with contextlib.suppress(aiohttp.ClientError):  # one of them is cut
        await _asked(house, tenant, **_TELL)
    [entry] = await house.entries(tenant)
    assert entry["estimated"] == 1
    assert entry["output_tokens"] > 0
    registry = house.meter.metrics.registry
    assert registry.get_sample_value("meter_stream_parse_errors_total") == 1


@pytest.mark.parametrize("size", [1, 5, 1_000])
def test_members_unpack_alike_however_they_are_cut(size: int) -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two") + bytes(8)
    unpacker = Unpacker("gzip", 100)
    out = b"".join(unpacker.feed(packed[at : at + size]) for at in range(0, len(packed), size))
    unpacker.end()
    assert (out, unpacker.broken) == (b"one two", False)


def test_trap_is_not_unpacked_whole() -> None:
    for packed in (zlib.compress(bytes(10_000)), gzip.compress(bytes(60)) * 20):
        unpacker = Unpacker("gzip", 100)
        assert len(unpacker.feed(packed)) <= 202
        assert unpacker.broken


_NONSENSE = [None, -1, 1.5, "many", "", True, [], "-3", "1e3", 2**60]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("field", ["prompt_tokens", "completion_tokens"])
@pytest.mark.parametrize("value", _NONSENSE, ids=str)
async def test_usage_that_is_no_number_is_estimated(
    house: House, tenant: Tenant, scripted: ScriptedProvider, value: Any, field: str, stream: bool
) -> None:
    scripted.then(reply=s.text("x" * 400).with_raw_usage({**_USAGE, field: value}))
    await tenant.chat("y" * 400, stream=stream)
    [entry] = await house.entries(tenant)
    assert (entry["estimated"], entry["output_tokens"]) == (1, 100)
    assert entry["charge_nanos"] == entry["input_tokens"] * 1_000 + 100 * 2_000


@pytest.mark.parametrize("stream", [True, False])
async def test_usage_in_other_words_for_numbers_is_exact(
    house: House, tenant: Tenant, scripted: ScriptedProvider, stream: bool
) -> None:
    raw = {"prompt_tokens": "20", "completion_tokens": 9.0}
    scripted.then(reply=s.text("x").with_raw_usage(raw))
    await tenant.chat(stream=stream)
    [entry] = await house.entries(tenant)
    assert (entry["charge_nanos"], entry["estimated"]) == (_EXACTLY, 0)


def _anthropic(usage: dict[str, Any]) -> Found:
    reader = paths.WIRES["anthropic_messages"].reader()
    answer = {"type": "message", "content": [{"type": "text", "text": "hi"}], "usage": usage}
    reader.whole(json.dumps(answer).encode())
    return reader.found


def _gemini(usage: dict[str, Any]) -> Found:
    reader = paths.WIRES["gemini_generate"].reader()
    candidate = {"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}
    reader.whole(json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode())
    return reader.found


@pytest.mark.parametrize("value", _NONSENSE, ids=str)
def test_nonsense_of_other_providers_is_no_usage(value: Any) -> None:
    for names, read in (
        (("input_tokens", "output_tokens"), _anthropic),
        (("promptTokenCount", "candidatesTokenCount"), _gemini),
    ):
        for name in names:
            found = read({**dict.fromkeys(names, 9), name: value})
            assert found.usage is None or not found.finished, name
        told = read(dict(zip(names, ("20", 9.0), strict=True)))
        assert told.finished
        assert told.usage is not None
        assert (told.usage.input, told.usage.output) == (20, 9)
        assert not read({names[0]: 20}).finished
