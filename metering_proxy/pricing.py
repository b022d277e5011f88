"""What usage costs: exact sums of integers, rounded once a request. Where prices come from is catalog.py's matter,
and the most that a request can cost is bounds.py's.

Rates are nano-USD a million tokens. A sum stays a fraction until the request is whole, since a token may cost less
than a nano-dollar.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from fractions import Fraction
from typing import Literal

from infra.kit import money
from infra.kit.value import value

MILLION = 1_000_000
SearchPer = Literal["search", "prompt"]
ONE = Fraction(1)


@value
class Rates:
    """Nano-USD a million tokens (`web_search`: a thousand searches, `request`: a thousand requests).

    An absent rate of audio or images is the rate of text: what a provider counts is never free.
    """

    input: int
    output: int = 0
    cache_read: int | None = None
    cache_write_5m: int | None = None
    cache_write_1h: int | None = None
    audio_input: int | None = None
    audio_output: int | None = None
    web_search: int = 0
    image_input: int | None = None
    image_output: int | None = None
    request: int = 0
    audio_cache_read: int | None = None

    @property
    def read(self) -> int:
        """The rate of cached input; the plain one where the provider has no discount."""
        return self.input if self.cache_read is None else self.cache_read

    @property
    def read_audio(self) -> int:
        """The rate of cached sound; that of cached text where the provider makes no difference."""
        return self.read if self.audio_cache_read is None else self.audio_cache_read

    @property
    def write_5m(self) -> int:
        """The rate of input written to the cache for five minutes."""
        return self.input if self.cache_write_5m is None else self.cache_write_5m

    @property
    def write_1h(self) -> int:
        """The rate of input written to the cache for an hour."""
        return self.write_5m if self.cache_write_1h is None else self.cache_write_1h


@value
class Price:
    """The price of one model from a moment on; immutable, and named by every entry that it priced.

    `units`: nano-USD of one unit of what is not counted in tokens: `millisecond`, `character`, or an image of one
    kind, `image <quality> <size>`. `search_per`: whether each search is paid, or all of one prompt as one.
    `searches_most`: how many a request is held for that allows them without saying how many. `units_least`: so
    many units of a request are paid, if it has fewer.
    """

    id: str
    from_at: int
    rates: Rates
    tiers: Mapping[str, Fraction] = field(default_factory=dict)
    long_above: int | None = None
    long_rates: Rates | None = None
    units: Mapping[str, Fraction] = field(default_factory=dict)
    search_per: SearchPer = "search"
    searches_most: int | None = None
    units_least: int = 0

    def rates_for(self, total_input: int) -> Rates:
        """The rates of a request with that much input, cached input included."""
        if self.long_rates is not None and self.long_above is not None:
            return self.long_rates if total_input > self.long_above else self.rates
        return self.rates

    def within_reach(self, total_input: int) -> list[Rates]:
        """The rates that a request of at most that much input can be priced at."""
        if self.long_rates is None or self.long_above is None or total_input <= self.long_above:
            return [self.rates]
        return [self.rates, self.long_rates]

    def counts(self, unit: str) -> bool:
        """Whether it has a price for that unit, or for a kind of it."""
        return any(name.split()[0] == unit.split()[0] for name in self.units)

    def unit(self, unit: str) -> Fraction:
        """The price of one unit: the dearest of its sort where it does not know the kind, 0 where it has none."""
        if unit in self.units or not unit:
            return self.units.get(unit, Fraction(0))
        of_its_kind = [
            self.units[name] for name in self.units if name.split()[0] == unit.split()[0]
        ]
        return max(of_its_kind, default=Fraction(0))

    def for_units(self, units: int, unit: str) -> Fraction:
        """What so many units of one request cost."""
        return max(units, self.units_least) * self.unit(unit)

    def paid_searches(self, searches: int) -> int:
        """How many are paid of so many searches that one request made."""
        return min(searches, 1) if self.search_per == "prompt" else searches

    def sells_searches(self, *, bounded: bool) -> bool:
        """Whether searches have a price, and an end. `bounded`: the request says how many there may be."""
        ends = bounded or self.search_per == "prompt" or self.searches_most is not None
        return bool(self.rates.web_search) and ends

    def factor(self, tier: str | None) -> Fraction:
        """The factor of the tier served. A tier that the price does not know costs the dearest one."""
        if tier is None or tier in PLAIN_TIERS:
            return ONE
        return self.tiers.get(tier, max([ONE, *self.tiers.values()]))

    def dearest_factor(self, asked: str | None) -> Fraction:
        """The factor of the dearest tier in which a request can be served. One that pins no tier leaves it to the
        provider, where a setting of the whole account may choose any; one that was asked for may fall back."""
        if asked in UNPINNED:
            return max([ONE, *self.tiers.values()])
        return max(ONE, self.factor(asked))

    def assumed_tier(self, asked: str | None, named: str | None) -> str | None:
        """The tier of an answer that broke off before it told its usage: the one that it `named` by then, else the
        dearest in which the request can be served, as `dearest_factor` has it."""
        if named not in UNPINNED:
            return named
        if self.dearest_factor(asked) == ONE:
            return None
        return max(self.tiers, key=self.tiers.__getitem__) if asked in UNPINNED else asked

    def sells_tier(self, asked: str | None) -> bool:
        """Whether a tier that is asked for has a price; of `flex` it is known that it is never the dearer one."""
        return asked == "flex" or self.knows_tier(asked)

    def knows_tier(self, tier: str | None) -> bool:
        """Whether `factor` is the provider's own for that tier, not the dearest for want of it."""
        return tier is None or tier in PLAIN_TIERS or tier in self.tiers


UNPINNED = frozenset((None, "", "auto"))
PLAIN_TIERS = frozenset(("", "default", "standard", "auto", "on_demand", "unspecified"))


@value
class Usage:
    """What a request used, in buckets that do not overlap, but for `reasoning`, which is part of `output`.

    `units` of `unit` are what is not counted in tokens (see Price.units).
    """

    input: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0
    reasoning: int = 0
    audio_input: int = 0
    audio_output: int = 0
    web_searches: int = 0
    tier: str | None = None
    image_input: int = 0
    image_output: int = 0
    requests: int = 0
    units: int = 0
    unit: str = ""
    audio_cache_read: int = 0

    @property
    def cached(self) -> int:
        """All input that was read from a cache."""
        return self.cache_read + self.audio_cache_read

    @property
    def total_input(self) -> int:
        """All input, cached and audio included."""
        return (
            self.input
            + self.cached
            + self.cache_write_5m
            + self.cache_write_1h
            + self.audio_input
            + self.image_input
        )

    @property
    def generated(self) -> int:
        """All output, audio and images included."""
        return self.output + self.audio_output + self.image_output

    @property
    def total(self) -> int:
        """All tokens."""
        return self.total_input + self.generated

    def with_output(self, tokens: int) -> "Usage":
        """The same with another number of output tokens."""
        return replace(self, output=tokens)

    def with_input(self, tokens: int) -> "Usage":
        """The same with another number of plain input tokens."""
        return replace(self, input=tokens)

    def with_units(self, units: int, unit: str) -> "Usage":
        """The same with so many units of something that is not counted in tokens."""
        return replace(self, units=units, unit=unit)

    def as_images(self, text: int = 0) -> "Usage":
        """The same where whatever was generated is images, but for so many tokens of `text` at most."""
        text = min(text, self.output)
        return replace(self, image_output=self.image_output + self.output - text, output=text)

    def as_sound(self) -> "Usage":
        """The same where whatever was generated is sound."""
        return replace(self, audio_output=self.audio_output + self.output, output=0)

    def in_tier(self, tier: str | None) -> "Usage":
        """The same served in another tier."""
        return replace(self, tier=tier)

    def with_searches(self, searches: int) -> "Usage":
        """The same with so many searches."""
        return replace(self, web_searches=searches)


def cost(usage: Usage, price: Price) -> Fraction:
    """The exact cost in nano-USD."""
    rates = price.rates_for(usage.total_input)
    tokens = (
        usage.input * rates.input
        + usage.cache_read * rates.read
        + usage.cache_write_5m * rates.write_5m
        + usage.cache_write_1h * rates.write_1h
        + usage.output * rates.output
        + usage.audio_cache_read * rates.read_audio
        + usage.audio_input * (rates.audio_input or rates.input)
        + usage.audio_output * (rates.audio_output or rates.output)
        + usage.image_input * (rates.image_input or rates.input)
        + usage.image_output * (rates.image_output or rates.output)
    )
    exact, factor = Fraction(tokens, MILLION), price.factor(usage.tier)
    if usage.units:
        exact += price.for_units(usage.units, usage.unit)
    if factor is not ONE:
        exact *= factor
    if not usage.web_searches and not usage.requests:
        return exact
    return exact + fees(rates, price.paid_searches(usage.web_searches), usage.requests)


def fees(rates: Rates, searches: int, requests: int) -> Fraction:
    """What is charged for so many paid searches and requests, whatever they carried."""
    return Fraction(searches * rates.web_search + requests * rates.request, 1000)


def cost_nanos(usage: Usage, price: Price) -> int:
    """The cost, rounded once, half to even."""
    return money.round_half_even(cost(usage, price))
