"""What an ended call is charged, from what its answer said of itself and how it ended. No I/O.

The provider's own usage where the answer came to its end; else what the provider had said, or the input as
estimated, with the output that was forwarded, and the entry says so. A call that failed without a word of
output is entered with what it may have cost, and the customer pays nothing.
"""

from dataclasses import dataclass

from infra.kit import money
from metering_proxy import pricing
from metering_proxy.ledger.ops import Settle
from metering_proxy.pricing import Price, Usage
from metering_proxy.tenant_side.holding import Terms
from metering_proxy.wires.wire import Found

_FAILED = frozenset(("no_answer", "cut", "error"))


@dataclass(frozen=True, slots=True)
class Verdict:
    """`estimated`: why the usage is not the provider's own, or None. `absorbed`: cost without a charge."""

    usage: Usage
    price: Price
    estimated: str | None
    absorbed: bool
    response_model: str | None
    unknown_tier: bool


def verdict(terms: Terms, found: Found, outcome: str) -> Verdict:
    """What the call used, at which price."""
    usage, estimated = _usage(terms, found, outcome)
    absorbed = estimated is not None and not found.text_bytes and outcome in _FAILED
    price = _price(terms, found.model, usage)
    unknown_tier = not price.knows_tier(usage.tier)
    return Verdict(usage, price, estimated, absorbed, found.model, unknown_tier)


def settle_op(call_id: str, terms: Terms, verdict: Verdict, outcome: str) -> Settle:
    """What is asked of the ledger."""
    cost_nanos = pricing.cost_nanos(verdict.usage, verdict.price)
    charge_nanos = money.with_markup(cost_nanos, terms.standing.plan.markup_ppm)
    return Settle(
        request_id=call_id,
        usage=verdict.usage,
        cost_nanos=cost_nanos,
        charge_nanos=0 if verdict.absorbed else charge_nanos,
        outcome=outcome,
        estimated=verdict.estimated is not None,
        response_model=verdict.response_model[:200] if verdict.response_model else None,
        parts=_parts(verdict),
    )


def _usage(terms: Terms, found: Found, outcome: str) -> tuple[Usage, str | None]:
    if outcome == "provider_error" and found.usage is None:
        return Usage(), None  # an HTTP error: nothing was generated, nothing is billed
    if found.usage is not None and found.finished:
        return found.usage, None
    if found.usage is not None:
        return found.usage.with_output(max(found.usage.output, found.output_estimate)), outcome
    estimate = Usage(input=terms.input_estimate, output=found.output_estimate)
    return estimate, "no_usage" if outcome in ("complete", "left") else outcome


def _price(terms: Terms, response_model: str | None, usage: Usage) -> Price:
    """The price of the model asked for, or of the one that answered where that is dearer."""
    asked = terms.route.price
    if response_model is None:
        return asked
    answered = terms.route.connection.by_name.get(response_model.lower())
    if answered is None or answered.id == terms.route.model.id:
        return asked
    other = answered.price(terms.started_at)
    if other is None or pricing.cost(usage, other) <= pricing.cost(usage, asked):
        return asked
    return other


def _parts(verdict: Verdict) -> dict[str, int | str]:
    """Every bucket that was priced, so that the entry can be priced anew."""
    usage = verdict.usage
    counted: dict[str, int | str] = {
        name: amount
        for name in (
            "input",
            "cache_read",
            "cache_write_5m",
            "cache_write_1h",
            "output",
            "reasoning",
            "audio_input",
            "audio_output",
            "web_searches",
        )
        if (amount := getattr(usage, name))
    }
    if usage.tier is not None:
        counted["tier"] = usage.tier[:32]
    counted["price"] = verdict.price.id
    if verdict.absorbed:
        counted["absorbed"] = 1
    return counted
