"""What a request reaches that its bytes do not show: kept items, other tiers, passes of their own, other cases."""

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from infra.kit.errors import AlcoveError
from metering_proxy import plans
from metering_proxy.pricing import Usage
from metering_proxy.providers import price_file
from metering_proxy.providers.catalog import Route
from metering_proxy.providers.connections import Connection, Model
from metering_proxy.providers.kinds import kinds
from metering_proxy.tenant_side.terms import agree
from metering_proxy.tenants import Standing
from metering_proxy.wires import paths
from metering_proxy.wires.wire import Ask, Envelope

_SAID = [{"role": "user", "content": "hi"}]
_PLAN = plans.load().get("plus")
_STANDING = Standing(_PLAN, "active", _PLAN.spans(0))


def _read(name: str, **body: Any) -> Ask:
    return paths.WIRES[name].read(json.dumps(body).encode(), Envelope("named"))


def _chat(messages: Any = _SAID, **more: Any) -> Ask:
    return _read("openai_chat", model="m", messages=messages, **more)


def _message(**more: Any) -> Ask:
    return _read("anthropic_messages", model="m", max_tokens=300, messages=_SAID, **more)


def _gemini(**more: Any) -> Ask:
    return _read("gemini_generate", contents=[{"parts": [{"text": "hi"}]}], **more)


def _route(provider: str, model: str) -> Route:
    found = next(item for item in price_file.load()[provider] if item.facts.id == model)
    offered = Model(f"{provider}/{model}", provider, found.facts, found.prices)
    connection = Connection(provider, kinds()[provider], provider, "https://x", (offered,))
    return Route(connection, offered, found.prices[-1])


def _held(ask: Ask, route: Route) -> int:
    agreed = agree(ask, route, _STANDING, 1_800_000_000_000)
    return agreed.bound.charge_nanos(1_000)


@pytest.mark.parametrize("tier", [None, "auto"])
def test_tier_that_is_not_pinned_is_held_as_the_dearest(tier: str | None) -> None:
    route = _route("openai", "gpt-5")
    pinned = _held(_chat(service_tier="default"), route)
    unpinned = _held(_chat(service_tier=tier) if tier else _chat(), route)
    assert unpinned > 1.9 * pinned
    assert _held(_chat(service_tier="priority"), route) > 1.9 * pinned
    assert _held(_chat(service_tier="flex"), route) <= 1.1 * pinned


def test_price_without_tiers_is_held_as_it_is() -> None:
    route = _route("openai", "gpt-5")
    plain = replace(route, price=replace(route.price, tiers={}))
    assert _held(_chat(service_tier="default"), plain) >= _held(_chat(), plain)


def test_tier_without_a_price_is_refused() -> None:
    route = _route("google", "gemini-2.5-pro")
    for named in ({"serviceTier": "priority"}, {"service_tier": "PRIORITY"}):
        with pytest.raises(AlcoveError) as caught:
            _held(_gemini(**named), route)
        assert caught.value.reason == "model_not_priced"
    for fine in ({}, {"serviceTier": "standard"}, {"service_tier": "flex"}):
        assert _held(_gemini(**fine), route) > 0


@pytest.mark.parametrize(("said", "tier"), [({}, "priority"), ({"serviceTier": "STANDARD"}, None)])
def test_gemini_is_paid_for_the_tier_served_or_else_the_one_asked_for(
    said: dict[str, str], tier: str | None
) -> None:
    wire = paths.WIRES["gemini_generate"]
    reader = wire.reader(_gemini(serviceTier="priority"))
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 2, **said}
    answer = {"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage}
    reader.whole(json.dumps(answer).encode())
    assert reader.found.usage == Usage(input=3, output=2, tier=tier)
    route = _route("google", "gemini-2.5-pro")
    priced = replace(route, price=replace(route.price, tiers={"priority": Fraction(2)}))
    assert _held(_gemini(serviceTier="priority"), priced) > 1.9 * _held(_gemini(), priced)


def test_earlier_sound_is_bounded_by_the_window_and_priced_as_sound() -> None:
    earlier = {"role": "assistant", "audio": {"id": "audio_1"}}
    found = _chat([*_SAID, earlier]).survey
    assert (found.opaque, found.audio) == (True, True)
    assert not _chat([*_SAID, {"role": "assistant", "content": "x", "audio": None}]).survey.opaque


def test_reasoning_that_is_in_the_body_is_bounded_by_its_bytes() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA" * 30}
    assert not _read("openai_responses", model="m", input=[item]).survey.opaque


@pytest.mark.parametrize(
    "part",
    [
        {"Type": "image_url"},
        {"type": "text", "text": "x", "Image_URL": "https://example.org"},
        {"text": "x", "fileDatA": {}},
        {"type": "text", "text": "x", "Cache_Control": {"ttl": "1h"}},
        {"type": "text", "text": "x", "\u017fource": {"data": "x"}},  # the long s, which folds to s
    ],
    ids=str,
)
def test_other_case_of_a_name_that_counts_is_refused(part: dict[str, Any]) -> None:
    with pytest.raises(AlcoveError) as caught:
        _chat([{"role": "user", "content": [part]}])
    assert caught.value.reason == "member_not_metered"


def test_context_that_is_compacted_is_refused_and_one_that_is_cleared_is_not() -> None:
    cleared = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    assert _message(context_management=cleared).strange == ()
    for edits in ([{"type": "compact_20260112"}], [*cleared["edits"], {"type": "new"}], [7]):
        with pytest.raises(AlcoveError) as caught:
            _message(context_management={"edits": edits})
        assert caught.value.reason == "member_not_metered"
    assert _message(compaction={}).strange == ("compaction",)
    asked = _read("openai_responses", model="m", input="x", context_management=[{"type": "c"}])
    assert asked.strange == ("context_management",)


def test_passes_that_the_sums_leave_out_are_counted() -> None:
    reader = paths.WIRES["anthropic_messages"].reader(_message())
    passes = [
        {
            "type": "compaction",
            "input_tokens": 180_000,
            "output_tokens": 3_500,
            "cache_creation_input_tokens": 70,
            "cache_creation": {"ephemeral_1h_input_tokens": 70},
        },
        {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000},
    ]
    usage = {"input_tokens": 23_000, "output_tokens": 1_000, "iterations": passes}
    reader.whole(json.dumps({"type": "message", "content": [], "usage": usage}).encode())
    assert reader.found.usage == Usage(input=203_000, output=4_500, cache_write_1h=70)
