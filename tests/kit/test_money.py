"""Money: integers, rounded once, never `$0.00` for something."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.kit import money

NANOS = st.integers(min_value=-(10**18), max_value=10**18)


@pytest.mark.parametrize(
    ("nanos", "text"),
    [
        (0, "$0.00"),
        (1, "$0.000000001"),
        (160, "$0.00000016"),
        (118_350, "$0.00012"),
        (5_550_000, "$0.0056"),
        (9_999_999, "$0.01"),
        (10_000_000, "$0.01"),
        (1_005_000_000, "$1.00"),
        (1_015_000_000, "$1.02"),
        (-118_350, "-$0.00012"),
        (1_234_567_890_000_000_000, "$1,234,567,890.00"),
    ],
)
def test_amount_reads_as_people_write_it(nanos: int, text: str) -> None:
    assert money.format_usd(nanos) == text


@given(NANOS.filter(bool))
def test_amount_is_never_shown_as_nothing_when_it_is_something(nanos: int) -> None:
    shown = money.format_usd(nanos)
    assert any(digit in shown for digit in "123456789")
    assert shown.startswith("-$" if nanos < 0 else "$")


@given(NANOS.filter(bool))
def test_amount_shown_is_near_the_amount_meant(nanos: int) -> None:
    shown = money.format_usd(abs(nanos))
    assert abs(money.parse_usd(shown) - abs(nanos)) <= max(
        abs(nanos) // 20, 5_000_000 if abs(nanos) >= 10**7 else 0
    )


@given(st.integers(0, 10**15), st.integers(0, 10**6))
def test_charge_is_rounded_once_half_to_even(cost: int, ppm: int) -> None:
    exact = Fraction(cost) * (1_000_000 + ppm) / 1_000_000
    charge = money.with_markup(cost, ppm)
    assert abs(charge - exact) <= Fraction(1, 2)
    if abs(charge - exact) == Fraction(1, 2):
        assert charge % 2 == 0
    assert charge >= cost
    assert money.with_markup(cost, 0) == cost


@given(st.integers(0, 10**18))
def test_amount_is_the_same_when_written_in_full_and_parsed(nanos: int) -> None:
    text = f"{nanos // 10**9}.{nanos % 10**9:09d}"
    assert money.parse_usd(text) == nanos
    assert money.parse_usd(f" ${text} ") == nanos


@pytest.mark.parametrize(
    ("text", "dollars"), [("1,250", 1250), ("$1,250.50", 1250.5), ("12,000,000", 12_000_000)]
)
def test_amount_may_have_thousands_separators(text: str, dollars: float) -> None:
    assert money.parse_usd(text) == dollars * money.NANOS_PER_USD


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "$", "-1", "1e3", "1.0000000001", "٣", "1.٣", "one", "1.2.3", "+1"),
        *("3,00", "5,5", "0,500", ",5", "1,0000", "1,25,000", "1.250,00", "1,,000"),
    ],
)
def test_amount_is_refused_when_it_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="dollar"):
        money.parse_usd(text)
