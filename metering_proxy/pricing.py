"""What usage costs: exact sums of integers, rounded once a request. Where prices come from is catalog.py's matter.

Rates are nano-USD a million tokens. A sum stays a fraction until the request is whole, since a token may cost less
than a nano-dollar.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from infra.kit import money

MILLION = 1_000_000
_PPM = 1_000_000
_ONE = Fraction(1)


@dataclass(frozen=True, slots=True)
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

    def dearest_input(self, reach: "Reach") -> int:
        """The most that an input token can cost, given what the request can make happen."""
        rates = [self.input, self.read]
        rates += [self.write_5m] if reach.writes else []
        rates += [self.write_1h] if reach.writes_1h else []
        rates += [self.audio_input or 0] if reach.audio else []
        rates += [self.image_input or 0] if reach.images else []
        return max(rates)

    def dearest_output(self, reach: "Reach") -> int:
        """The same for an output token."""
        audio = (self.audio_output or 0) if reach.audio else 0
        return max(self.output, audio, self.image_output or 0)

    @property
    def read(self) -> int:
        """The rate of cached input; the plain one where the provider has no discount."""
        return self.input if self.cache_read is None else self.cache_read

    @property
    def write_5m(self) -> int:
        """The rate of input written to the cache for five minutes."""
        return self.input if self.cache_write_5m is None else self.cache_write_5m

    @property
    def write_1h(self) -> int:
        """The rate of input written to the cache for an hour."""
        return self.write_5m if self.cache_write_1h is None else self.cache_write_1h


@dataclass(frozen=True, slots=True)
class Price:
    """The price of one model from a moment on; immutable, and named by every entry that it priced.

    `units`: nano-USD of one unit of what is not counted in tokens: `millisecond`, `character`, or an image of one
    kind, `image <quality> <size>`.
    """

    id: str
    from_at: int
    rates: Rates
    tiers: Mapping[str, Fraction] = field(default_factory=dict)
    long_above: int | None = None
    long_rates: Rates | None = None
    units: Mapping[str, Fraction] = field(default_factory=dict)

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

    def factor(self, tier: str | None) -> Fraction:
        """The factor of the tier served. A tier that the price does not know costs the dearest one."""
        if tier is None or tier in _PLAIN_TIERS:
            return _ONE
        return self.tiers.get(tier, max([_ONE, *self.tiers.values()]))

    def knows_tier(self, tier: str | None) -> bool:
        """Whether `factor` is the provider's own for that tier, not the dearest for want of it."""
        return tier is None or tier in _PLAIN_TIERS or tier in self.tiers


_PLAIN_TIERS = frozenset(("", "default", "standard", "auto"))


@dataclass(frozen=True, slots=True)
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

    @property
    def total_input(self) -> int:
        """All input, cached and audio included."""
        return (
            self.input
            + self.cache_read
            + self.cache_write_5m
            + self.cache_write_1h
            + self.audio_input
            + self.image_input
        )

    @property
    def total(self) -> int:
        """All tokens."""
        return self.total_input + self.output + self.audio_output + self.image_output

    def with_output(self, tokens: int) -> "Usage":
        """The same with another number of output tokens."""
        return replace(self, output=tokens)

    def with_units(self, units: int, unit: str) -> "Usage":
        """The same with so many units of something that is not counted in tokens."""
        return replace(self, units=units, unit=unit)

    def as_images(self) -> "Usage":
        """The same where whatever was generated is images."""
        return replace(self, image_output=self.image_output + self.output, output=0)

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
        + usage.audio_input * (rates.audio_input or rates.input)
        + usage.audio_output * (rates.audio_output or rates.output)
        + usage.image_input * (rates.image_input or rates.input)
        + usage.image_output * (rates.image_output or rates.output)
    )
    exact, factor = Fraction(tokens, MILLION), price.factor(usage.tier)
    if usage.units:
        exact += usage.units * price.unit(usage.unit)
    if factor is not _ONE:
        exact *= factor
    fees = usage.web_searches or usage.requests
    return exact + _fees(rates, usage.web_searches, usage.requests) if fees else exact


def _fees(rates: Rates, searches: int, requests: int) -> Fraction:
    return Fraction(searches * rates.web_search + requests * rates.request, 1000)


def cost_nanos(usage: Usage, price: Price) -> int:
    """The cost, rounded once, half to even."""
    return money.round_half_even(cost(usage, price))


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that a request can cost: so much for its input, and so much for each unit of its token limit.

    Costs are whole numbers of 1/`scale` nano-USD; a charge adds the markup.
    """

    input_tokens: int
    input_cost: int
    output_cost: int  # for one token of each choice
    scale: int
    markup_ppm: int
    choices: int = 1
    extra_output: int = 0  # what the token limit does not bound, such as a rejected prediction

    def charge_nanos(self, limit: int) -> int:
        """The hold for a token limit. Rounded up at both steps: a charge is rounded at both."""
        cost = self.input_cost + (limit + self.extra_output) * self.output_cost
        return _up(_up(cost, self.scale) * (_PPM + self.markup_ppm), _PPM)

    def tokens(self, limit: int) -> int:
        """The most tokens that a request with that limit can use."""
        return self.input_tokens + limit * self.choices + self.extra_output

    def affordable(self, remaining_nanos: int, limit: int) -> int:
        """The largest token limit up to `limit` whose hold fits; -1 where not even the input does."""
        if self.charge_nanos(limit) <= remaining_nanos:
            return limit
        cost = remaining_nanos * _PPM // (_PPM + self.markup_ppm) * self.scale
        left = cost - self.input_cost - self.extra_output * self.output_cost
        if left < 0 or not self.output_cost:
            return -1
        fits = min(limit, left // self.output_cost)
        return fits if self.charge_nanos(fits) <= remaining_nanos else fits - 1

    def affordable_tokens(self, remaining_tokens: int, limit: int) -> int:
        """The same for a limit of tokens."""
        left = remaining_tokens - self.input_tokens - self.extra_output
        return -1 if left < 0 else min(limit, left // self.choices)


def widest(bounds: Sequence[Bound]) -> Bound:
    """A bound for whichever of several models answers: at least each of them, at any token limit."""
    scale = math.lcm(*(bound.scale for bound in bounds))
    return replace(
        bounds[0],
        input_tokens=max(bound.input_tokens for bound in bounds),
        input_cost=max(bound.input_cost * (scale // bound.scale) for bound in bounds),
        output_cost=max(bound.output_cost * (scale // bound.scale) for bound in bounds),
        scale=scale,
    )


def _up(number: int, divisor: int) -> int:
    return -(-number // divisor)


@dataclass(frozen=True, slots=True)
class Reach:
    """What a request can make happen, as far as its price is concerned.

    `input_tokens`: of all passes together, where searches make the provider read the input again.
    """

    input_tokens: int
    writes: bool = False
    writes_1h: bool = False
    audio: bool = False
    choices: int = 1
    extra_output: int = 0
    tier: str | None = None
    images: bool = False
    searches: int = 0
    units: int = 0
    unit: str = ""


def bound(reach: Reach, price: Price, markup_ppm: int) -> Bound:
    """The upper bound at the dearest rates that the request can reach."""
    reachable = price.within_reach(reach.input_tokens)
    factor = max(_ONE, price.factor(reach.tier)) if reach.tier else _ONE
    scale = MILLION * factor.denominator
    dearest = max(rates.dearest_input(reach) for rates in reachable)
    output = max(rates.dearest_output(reach) for rates in reachable)
    fixed = max(_fees(rates, reach.searches, 1) for rates in reachable)
    if reach.units:
        fixed += reach.units * price.unit(reach.unit) * factor
    return Bound(
        input_tokens=reach.input_tokens,
        input_cost=reach.input_tokens * dearest * factor.numerator + math.ceil(fixed * scale),
        output_cost=output * reach.choices * factor.numerator,
        scale=scale,
        markup_ppm=markup_ppm,
        choices=reach.choices,
        extra_output=reach.extra_output,
    )
