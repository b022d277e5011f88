"""The most that a request can cost, known before it is sent: what a hold takes. What it did cost: pricing.py."""

import math
from collections.abc import Sequence
from dataclasses import replace

from infra.kit.value import value
from metering_proxy.pricing import MILLION, Price, Rates, fees

_PPM = 1_000_000


@value
class Reach:
    """What a request can make happen, as far as its price is concerned.

    `input_tokens`: of all passes together, where searches make the provider read the input again.
    `open_searches`: it allows searches without saying how many.
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
    open_searches: bool = False
    units: int = 0
    unit: str = ""


@value
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

    def output_tokens(self, limit: int) -> int:
        """The most tokens that can be generated with that limit."""
        return limit * self.choices + self.extra_output

    def tokens(self, limit: int) -> int:
        """The most tokens that a request with that limit can use."""
        return self.input_tokens + self.output_tokens(limit)

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


def _dearest_input(rates: Rates, reach: Reach) -> int:
    """The most that an input token can cost, given what the request can make happen."""
    reachable = [rates.input, rates.read]
    reachable += [rates.write_5m] if reach.writes else []
    reachable += [rates.write_1h] if reach.writes_1h else []
    reachable += [rates.audio_input or 0, rates.read_audio] if reach.audio else []
    reachable += [rates.image_input or 0] if reach.images else []
    return max(reachable)


def _dearest_output(rates: Rates, reach: Reach) -> int:
    audio = (rates.audio_output or 0) if reach.audio else 0
    return max(rates.output, audio, rates.image_output or 0)


def bound(reach: Reach, price: Price, markup_ppm: int) -> Bound:
    """The upper bound at the dearest rates that the request can reach."""
    reachable = price.within_reach(reach.input_tokens)
    factor = price.dearest_factor(reach.tier)
    scale = MILLION * factor.denominator
    dearest = max(_dearest_input(rates, reach) for rates in reachable)
    output = max(_dearest_output(rates, reach) for rates in reachable)
    searches = price.searches_most or 1 if reach.open_searches else reach.searches
    fixed = max(fees(rates, price.paid_searches(searches), 1) for rates in reachable)
    if reach.units:
        fixed += price.for_units(reach.units, reach.unit) * factor
    return Bound(
        input_tokens=reach.input_tokens,
        input_cost=reach.input_tokens * dearest * factor.numerator + math.ceil(fixed * scale),
        output_cost=output * reach.choices * factor.numerator,
        scale=scale,
        markup_ppm=markup_ppm,
        choices=reach.choices,
        extra_output=reach.extra_output,
    )
