"""From a provider's own words to nano-USD: the published costs, through the reader of each wire."""

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from infra.kit import money
from metering_proxy import pricing
from metering_proxy.pricing import Price, Rates, Usage, cost_nanos
from metering_proxy.providers import price_file
from metering_proxy.providers.kinds import kinds
from metering_proxy.wires import openai_usage, paths
from metering_proxy.wires.events import Splitter
from metering_proxy.wires.wire import Envelope
from tests.metering_proxy.goldens import GOLDENS


def _price(provider: str, model: str) -> Price:
    return next(m for m in price_file.load()[provider] if m.facts.id == model).prices[-1]


_XAI = Price("xai/sample", 0, Rates(*(money.parse_usd(usd) for usd in ("1.25", "2.5", "0.20"))))
_A = {
    "input_tokens": 25,
    "cache_creation_input_tokens": 1000,
    "cache_read_input_tokens": 2000,
    "cache_creation": {"ephemeral_5m_input_tokens": 600, "ephemeral_1h_input_tokens": 400},
    "output_tokens": 15,
}
_SEARCHED = {**_A, "server_tool_use": {"web_search_requests": 3}}
_MORE_WRITTEN = {**_A, "cache_creation_input_tokens": 5000}
_FLAT = {name: value for name, value in _A.items() if name != "cache_creation"}
_HOUR = {"input_tokens": 0, "cache_creation_input_tokens": 100_000, "output_tokens": 10}
_B = {
    "prompt_tokens": 1117,
    "completion_tokens": 46,
    "total_tokens": 1163,
    "prompt_tokens_details": {"cached_tokens": 1024, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 20, "audio_tokens": 0},
}
_C = {
    "input_tokens": 1117,
    "input_tokens_details": {"cached_tokens": 1024},
    "output_tokens": 46,
    "output_tokens_details": {"reasoning_tokens": 46},
}
_D = {
    "promptTokenCount": 1117,
    "cachedContentTokenCount": 1024,
    "candidatesTokenCount": 26,
    "thoughtsTokenCount": 20,
}
_F = {
    "prompt_tokens": 1000,
    "completion_tokens": 10,
    "prompt_cache_hit_tokens": 600,
    "prompt_cache_miss_tokens": 400,
    "prompt_tokens_details": {"cached_tokens": 600},
}
_G = {
    "prompt_tokens": 10_120,
    "completion_tokens": 1499,
    "total_tokens": 10_120 + 1499 + 2809,
    "prompt_tokens_details": {"cached_tokens": 128},
    "completion_tokens_details": {"reasoning_tokens": 2809},
    "cost_in_usd_ticks": 232_856_000,
}


def _told(kind: str, wire: str, usage: Mapping[str, Any], tier: str | None = None) -> Usage:
    """What a reader finds in a whole answer with that usage."""
    answer: dict[str, Any] = {"usage": usage, "choices": [{"message": {}}], "data": []}
    if wire == "anthropic_messages":
        answer["type"] = "message"
    if wire.startswith("gemini"):
        answer = {"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage}
    if tier is not None:
        answer["service_tier"] = tier
    reader = paths.WIRES[wire].reader(None, kinds()[kind].dialect)
    reader.whole(json.dumps(answer).encode())
    assert reader.found.finished
    assert reader.found.usage is not None
    return reader.found.usage


@pytest.mark.parametrize(
    ("case", "usage", "price", "nanos"),
    [
        ("A", ("anthropic", "anthropic_messages", _A), ("anthropic", "claude-sonnet-4-5"), 5_550_000),
        ("A2", ("anthropic", "anthropic_messages", _SEARCHED), ("anthropic", "claude-sonnet-4-5"), 35_550_000),
        ("A3", ("anthropic", "anthropic_messages", _MORE_WRITTEN), ("anthropic", "claude-sonnet-4-5"), 20_550_000),
        ("A flat", ("anthropic", "anthropic_messages", _FLAT), ("anthropic", "claude-sonnet-4-5"), 4_650_000),
        ("B", ("openai", "openai_chat", _B), ("openai", "gpt-4o-mini"), 118_350),
        ("C", ("openai", "openai_responses", _C, "default"), ("openai", "gpt-5"), 704_250),
        ("C flex", ("openai", "openai_responses", _C, "flex"), ("openai", "gpt-5"), 352_125),
        ("C priority", ("openai", "openai_responses", _C, "priority"), ("openai", "gpt-5"), 1_408_500),
        ("D", ("google", "gemini_generate", _D), ("google", "gemini-2.5-pro"), 704_250),
        ("F", ("deepseek", "openai_chat", _F), ("deepseek", "deepseek-chat"), 133_000),
        ("G", ("xai", "openai_chat", _G), _XAI, 23_285_600),
        ("I", ("openai", "openai_embeddings", {"prompt_tokens": 8}), ("openai", "text-embedding-3-small"), 160),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_providers_own_words_cost_what_is_published(
    case: str, usage: tuple[Any, ...], price: Any, nanos: int
) -> None:
    of = price if isinstance(price, Price) else _price(*price)
    assert pricing.cost(_told(*usage), of) == nanos


def test_writes_without_a_split_live_for_an_hour_where_that_was_asked() -> None:
    block = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    asked = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": [block]}]}
    wire = paths.WIRES["anthropic_messages"]
    reader = wire.reader(wire.read(json.dumps(asked).encode()))
    reader.whole(json.dumps({"type": "message", "usage": _HOUR}).encode())
    assert reader.found.usage is not None
    assert cost_nanos(reader.found.usage, _price("anthropic", "claude-haiku-4-5")) == 200_050_000


@pytest.mark.parametrize(
    ("tokens", "nanos"),
    [(199_999, 250_098_750), (200_000, 250_100_000), (200_001, 500_152_500)],
)
def test_long_context_begins_one_token_above_the_threshold(tokens: int, nanos: int) -> None:
    usage = {"promptTokenCount": tokens, "candidatesTokenCount": 10}
    found = _told("google", "gemini_generate", usage)
    assert cost_nanos(found, _price("google", "gemini-2.5-pro")) == nanos


def test_cached_input_counts_towards_the_threshold() -> None:
    price = _price("anthropic", "claude-sonnet-4-5")
    below = Usage(input=1, cache_read=199_999)
    assert pricing.cost(below, price) == 3_000 + 199_999 * 300
    above = Usage(input=1, cache_read=199_999, cache_write_1h=1)
    assert pricing.cost(above, price) == 6_000 + 199_999 * 600 + 12_000


@pytest.mark.parametrize(
    ("usage", "nanos"),
    [
        ({"cost": 0.00095}, 950_000),
        ({"cost": 1e-9}, 1),
        ({"cost": 0.0000475, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.00095}}, 997_500),
        ({"cost": 0.00095, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.5}}, 950_000),
        ({"cost": 0}, None),
        ({"cost": -1}, None),
        ({"cost": "free"}, None),
        ({"cost": True}, None),
        ({"cost": 1e30}, None),
        ({"cost": 1_000_001}, None),
        ({}, None),
    ],
    ids=str,
)  # fmt: skip
def test_stated_cost_is_read_exactly_and_nonsense_is_none(
    usage: dict[str, Any], nanos: int | None
) -> None:
    assert openai_usage.stated_cost(usage, kinds()["openrouter"].dialect) == nanos


def test_ticks_are_ten_billionths_of_a_dollar() -> None:
    assert openai_usage.stated_cost(_G, kinds()["xai"].dialect) == 23_285_600


@pytest.mark.parametrize(
    ("completion", "total", "output", "doubt"),
    [
        (9, 135, 103, None),
        (500, 532, 500, None),
        (500, 7, 594, "reasoning"),
        (500, 0, 594, "reasoning"),
    ],
)
def test_reasoning_is_placed_by_arithmetic_and_a_doubt_costs_the_dearer(
    completion: int, total: int, output: int, doubt: str | None
) -> None:
    usage = {
        "prompt_tokens": 32,
        "completion_tokens": completion,
        "total_tokens": total,
        "completion_tokens_details": {"reasoning_tokens": 94},
    }
    reading = openai_usage.read(usage, None, kinds()["xai"].dialect)
    assert reading is not None
    assert (reading.usage.output, reading.doubt) == (output, doubt)


def test_audio_and_pictures_without_a_price_of_their_own_cost_as_text() -> None:
    plain = Price("p", 0, Rates(input=1_000_000, output=2_000_000))
    usage = Usage(audio_input=3, audio_output=5, image_input=7, image_output=11)
    assert pricing.cost(usage, plain) == 3 + 10 + 7 + 22
    dear = Price(
        "p", 0, Rates(1_000_000, 2_000_000, audio_output=20_000_000, image_output=40_000_000)
    )
    assert pricing.cost(usage, dear) == 3 + 100 + 7 + 440


def test_fees_of_requests_and_units_are_part_of_the_sum() -> None:
    price = Price("p", 0, Rates(0, request=5_000_000), units={"millisecond": Fraction(100)})
    assert pricing.cost(Usage(requests=1, units=1_500, unit="millisecond"), price) == 155_000
    assert price.unit("image hd") == 0
    assert not price.counts("image")


def test_query_of_a_caller_does_not_choose_the_price() -> None:
    wire = paths.WIRES["gemini_generate"]
    ask = wire.read(
        b'{"contents":[{"parts":[]}]}', Envelope(model="m", query="alt=sse&model=cheap")
    )
    assert (ask.model, ask.query) == ("m", "")


def test_zeros_at_the_end_take_nothing_off_what_was_said_within() -> None:
    [golden] = [golden for golden in GOLDENS if golden.name == "anthropic_zeros_within"]
    reader = golden.reads.reader(None, kinds()[golden.kind].dialect)
    for _, data in Splitter().feed(golden.body):
        if data is not None:
            reader.event(data)
    assert reader.found.finished
    assert reader.found.usage is not None
    assert cost_nanos(reader.found.usage, _price("anthropic", "claude-sonnet-4-5")) == 5_550_000
