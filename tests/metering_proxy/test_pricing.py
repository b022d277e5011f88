"""Prices to the last nano: the thirteen published costs, and a bound that no usage gets above."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.kit import money
from metering_proxy import pricing
from metering_proxy.bounds import Reach, bound
from metering_proxy.pricing import Price, Rates, Usage, cost_nanos
from metering_proxy.providers import price_file


def _usd(text: str) -> int:
    return money.parse_usd(text)


def _known(provider: str, model: str) -> Price:
    found = next(m for m in price_file.load()[provider] if m.facts.id == model)
    return found.prices[-1]


SONNET = _known("anthropic", "claude-sonnet-4-5")
HAIKU = _known("anthropic", "claude-haiku-4-5")
MINI = _known("openai", "gpt-4o-mini")
GPT5 = _known("openai", "gpt-5")
EMBEDDING = _known("openai", "text-embedding-3-small")
GEMINI = Price(
    "google/gemini-2.5-pro@test",
    0,
    Rates(_usd("1.25"), _usd("10"), _usd("0.125")),
    long_above=200_000,
    long_rates=Rates(_usd("2.5"), _usd("15")),
)
DEEPSEEK = Price("deepseek/chat@test", 0, Rates(_usd("0.28"), _usd("0.42"), _usd("0.028")))
XAI = Price("xai/sample@test", 0, Rates(_usd("1.25"), _usd("2.5"), _usd("0.20")))
A = Usage(input=25, cache_write_5m=600, cache_write_1h=400, cache_read=2000, output=15)
C = Usage(input=93, cache_read=1024, output=46, reasoning=46)


@pytest.mark.parametrize(
    ("case", "usage", "price", "nanos"),
    [
        ("A", A, SONNET, 5_550_000),
        (
            "A2",
            Usage(25, 2000, 600, 400, 15, web_searches=3),
            SONNET,
            35_550_000,
        ),
        ("A3", Usage(25, 2000, 4600, 400, 15), SONNET, 20_550_000),
        ("A flat", Usage(25, 2000, 1000, 0, 15), SONNET, 4_650_000),
        ("B", Usage(input=93, cache_read=1024, output=46), MINI, 118_350),
        ("C", C, GPT5, 704_250),
        ("C flex", Usage(input=93, cache_read=1024, output=46, tier="flex"), GPT5, 352_125),
        (
            "C priority",
            Usage(input=93, cache_read=1024, output=46, tier="priority"),
            GPT5,
            1_408_500,
        ),
        ("D", Usage(input=93, cache_read=1024, output=46, reasoning=20), GEMINI, 704_250),
        ("E at the threshold", Usage(input=200_000, output=10), GEMINI, 250_100_000),
        ("E above it", Usage(input=200_001, output=10), GEMINI, 500_152_500),
        ("F", Usage(input=400, cache_read=600, output=10), DEEPSEEK, 133_000),
        ("G", Usage(input=9_992, cache_read=128, output=1499 + 2809), XAI, 23_285_600),
        ("H", Usage(cache_write_1h=100_000, output=10), HAIKU, 200_050_000),
        ("I", Usage(input=8), EMBEDDING, 160),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_published_cost_is_met_to_the_nano(
    case: str, usage: Usage, price: Price, nanos: int
) -> None:
    assert pricing.cost(usage, price) == nanos
    assert cost_nanos(usage, price) == nanos


def test_cost_is_rounded_once_half_to_even() -> None:
    half = Price("p", 0, Rates(input=500_000, output=500_000))
    assert cost_nanos(Usage(input=1), half) == 0
    assert cost_nanos(Usage(input=1, output=1), half) == 1
    assert cost_nanos(Usage(input=3), half) == 2
    assert cost_nanos(Usage(input=5), half) == 2


def test_unknown_tier_costs_the_dearest_known() -> None:
    assert GPT5.factor("scale") == 2
    assert not GPT5.knows_tier("scale")
    assert GPT5.factor("default") == 1
    assert GPT5.factor(None) == 1
    assert GPT5.factor("flex") == Fraction(1, 2)


_counts = st.integers(0, 300_000)


@st.composite
def _requests(draw: st.DrawFn) -> tuple[Reach, int, list[Usage]]:
    """A request's reach, its token limit, and usages that stay inside of both."""
    reach = Reach(
        input_tokens=draw(_counts),
        writes=draw(st.booleans()),
        writes_1h=draw(st.booleans()),
        choices=draw(st.integers(1, 8)),
        extra_output=draw(st.integers(0, 100)),
        tier=draw(st.sampled_from([None, "default", "priority"])),
    )
    limit = draw(st.integers(1, 20_000))
    usages = []
    for _ in range(3):
        left = reach.input_tokens
        read = draw(st.integers(0, left))
        write = draw(st.integers(0, left - read)) if reach.writes else 0
        hour = draw(st.integers(0, left - read - write)) if reach.writes_1h else 0
        output = draw(st.integers(0, limit * reach.choices + reach.extra_output))
        tier = draw(st.sampled_from(["default", reach.tier]))
        usages.append(Usage(left - read - write - hour, read, write, hour, output, tier=tier))
    return reach, limit, usages


@given(
    asked=_requests(),
    price=st.sampled_from([SONNET, HAIKU, MINI, GPT5, GEMINI, DEEPSEEK, EMBEDDING]),
    markup_ppm=st.sampled_from([0, 200_000, 1_234_567]),
)
def test_hold_is_at_least_what_any_usage_within_reach_is_charged(
    asked: tuple[Reach, int, list[Usage]], price: Price, markup_ppm: int
) -> None:
    reach, limit, usages = asked
    hold = bound(reach, price, markup_ppm).charge_nanos(limit)
    for usage in usages:
        assert money.with_markup(cost_nanos(usage, price), markup_ppm) <= hold


@given(
    asked=_requests(),
    price=st.sampled_from([SONNET, MINI, GPT5, EMBEDDING]),
    markup_ppm=st.sampled_from([0, 200_000, 1_234_567]),
    remaining=st.integers(0, 5_000_000_000),
)
def test_affordable_limit_fits_and_one_more_does_not(
    asked: tuple[Reach, int, list[Usage]], price: Price, markup_ppm: int, remaining: int
) -> None:
    reach, limit, _ = asked
    most = bound(reach, price, markup_ppm)
    fits = most.affordable(remaining, limit)
    if fits >= 0:
        assert most.charge_nanos(fits) <= remaining
    if fits < limit and most.output_cost:
        assert most.charge_nanos(fits + 2) > remaining
