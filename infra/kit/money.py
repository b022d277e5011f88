"""LIGHT. Money as integers of nano-USD: rounding and words. No prices here."""

import re
from fractions import Fraction

NANOS_PER_USD = 1_000_000_000
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(,[0-9]{3})+")


def round_half_even(amount_nanos: Fraction) -> int:
    """An exact sum of nano-USD as a whole number, ties to even. Called once a request, never per part."""
    return round(amount_nanos)


def with_markup(cost_nanos: int, markup_ppm: int) -> int:
    """The charge for a cost: cost × (1 + markup in parts per million), rounded once, half to even."""
    if not markup_ppm:
        return cost_nanos
    return round_half_even(Fraction(cost_nanos * (1_000_000 + markup_ppm), 1_000_000))


def format_usd(nanos: int) -> str:
    """Dollars for a person: two digits from a cent up, and never `$0.00` for something.

    Below a cent as many digits as show two significant figures (`$0.00012`), at most nine.
    """
    sign, size = ("-" if nanos < 0 else ""), abs(nanos)
    if size == 0 or size >= NANOS_PER_USD // 100:
        cents = round(Fraction(size * 100, NANOS_PER_USD))
        return f"{sign}${cents // 100:,}.{cents % 100:02d}"
    digits = f"{size:09d}"
    first = len(digits) - len(digits.lstrip("0"))
    places = min(9, first + 2)
    scaled = round(Fraction(size, 10 ** (9 - places)))
    text = f"{scaled:0{places}d}".rstrip("0")
    return f"{sign}$0.{text}" if len(text) >= 2 else f"{sign}$0.{text:0<2}"


def parse_usd(text: str) -> int:
    """Nano-USD of a decimal number of dollars such as `1.25`. ValueError says what is wrong with it.

    A comma may only stand between groups of three (`1,250.50`): where people write `3,00` for three
    dollars, reading three hundred would be worse than asking again.
    """
    whole, _, part = text.strip().removeprefix("$").partition(".")
    if _GROUPED.fullmatch(whole):
        whole = whole.replace(",", "")
    if not (whole or part) or not (whole or "0").isascii() or not (whole or "0").isdigit():
        raise ValueError(f"{text!r} is not an amount in dollars, such as 1.25")
    if part and not (part.isascii() and part.isdigit()):
        raise ValueError(f"{text!r} is not an amount in dollars, such as 1.25")
    if len(part) > 9:
        raise ValueError(f"{text!r} is finer than a nano-dollar (nine decimals)")
    return int(whole or "0") * NANOS_PER_USD + int(f"{part:0<9}" if part else "0")
