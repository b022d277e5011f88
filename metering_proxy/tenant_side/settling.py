"""What an ended call is charged, from what its answer said of itself and how it ended. No I/O.

The provider's own usage where the answer came to its end; else what the provider had said, or the input as
estimated, with the output that was forwarded, and the entry says so. A call that failed without a word of
output is entered with what it may have cost, and the customer pays nothing.
"""

from dataclasses import replace
from fractions import Fraction

from infra.kit import money
from infra.kit.value import value
from metering_proxy import pricing
from metering_proxy.ledger.ops import NOT_SENT, Reroute, Settle
from metering_proxy.pricing import Price, Usage
from metering_proxy.providers.connections import Connection, Model, folded
from metering_proxy.tenant_side.terms import Terms, target
from metering_proxy.wires.dialect import Dialect
from metering_proxy.wires.wire import Found

_FAILED = frozenset(("no_answer", "cut", "error"))


@value
class Verdict:
    """`estimated`: why the usage is not the provider's own, or None. `absorbed`: cost without a charge.

    `cost` in nano-USD, exactly; `stated`: it is the provider's own word. `doubt`: what its numbers leave open.
    """

    usage: Usage
    price: Price
    estimated: str | None
    absorbed: bool
    response_model: str | None
    unknown_tier: bool
    cost: Fraction
    stated: bool = False
    doubt: str | None = None


def verdict(terms: Terms, found: Found, outcome: str, limit: int) -> Verdict:
    """What the call used, at which price. `limit`: its token limit, which no estimate goes beyond."""
    usage, estimated = _usage(terms, found, outcome, limit)
    absorbed = estimated is not None and not found.passed_bytes and outcome in _FAILED
    route = terms.route
    price = price_of(route.connection, route.model, found.model, usage, terms.started_at)
    price = price or route.price
    if price.rates.request and usage.total:
        usage = replace(usage, requests=1)
    by_price = pricing.cost(usage, price)
    cost, doubt = _weighed(by_price, found, route.connection.kind.dialect, estimated)
    return Verdict(
        usage,
        price,
        estimated,
        absorbed,
        response_model=found.model,
        unknown_tier=not price.knows_tier(usage.tier),
        cost=cost,
        stated=cost is not by_price,
        doubt=doubt,
    )


def _weighed(
    by_price: Fraction, found: Found, dialect: Dialect, estimated: str | None
) -> tuple[Fraction, str | None]:
    """The cost, and what is doubtful about it: a stated cost counts, or is compared, as the dialect says."""
    if found.stated is None or estimated is not None:
        return by_price, found.doubt
    if dialect.cost_use == "charge":
        return found.stated, found.doubt
    same = round(found.stated) == round(by_price)
    return by_price, found.doubt if same else "stated_cost"


def settle_op(
    call_id: str, terms: Terms, verdict: Verdict, outcome: str, failure: str | None
) -> Settle:
    """What is asked of the ledger. `failure`: a word for what went wrong, if anything."""
    cost_nanos = money.round_half_even(verdict.cost)
    charge_nanos = money.with_markup(cost_nanos, terms.standing.plan.markup_ppm)
    charged = terms.is_charged and not verdict.absorbed
    return Settle(
        request_id=call_id,
        usage=verdict.usage,
        cost_nanos=cost_nanos,
        charge_nanos=charge_nanos if charged else 0,
        outcome=outcome,
        estimated=verdict.estimated is not None,
        response_model=_stored(verdict.response_model),
        parts=_parts(verdict) | ({} if failure is None else {"failure": failure}),
    )


def reroute_op(failed: Settle, onward: Terms) -> Reroute:
    """What is asked of the ledger where an attempt failed and the call goes on: its cost is the operator's."""
    return Reroute(replace(failed, charge_nanos=0), target(onward))


def _usage(terms: Terms, found: Found, outcome: str, limit: int) -> tuple[Usage, str | None]:
    if outcome in ("provider_error", NOT_SENT):
        return Usage(), None  # an HTTP error: nothing was generated, nothing is billed
    usage = found.usage
    if usage is not None and usage.units and not usage.total and not terms.priced(usage.unit):
        usage = None  # the answer counts what has no price, and tells no tokens
    if usage is not None and found.reported_usage is not None:
        return usage, None
    passed = min(found.output_estimate, terms.bound.output_tokens(limit))
    why = "no_usage" if outcome in ("complete", "left") else outcome
    if usage is None:
        return terms.estimate(passed, searches=found.searches, tier=found.tier), why
    if not usage.total_input:
        usage = usage.with_input(terms.input_estimate)
    if found.finished and usage.generated:
        return usage, why
    tier = terms.route.price.assumed_tier(terms.ask.tier, usage.tier or found.tier)
    return usage.with_output(max(usage.output, passed)).in_tier(tier), why


def price_of(
    connection: Connection, asked: Model, response_model: str | None, usage: Usage, at: int
) -> Price | None:
    """The price of the model asked for, or of the one that answered where that is dearer; None: no price."""
    price = asked.price(at)
    answered = connection.by_name.get(folded(response_model or ""))
    other = None if answered is None or answered is asked else answered.price(at)
    if price is None or other is None or pricing.cost(usage, other) <= pricing.cost(usage, price):
        return price
    return other


def _stored(model: str | None) -> str | None:
    """The provider's name for its model as books can hold it: no text of PostgreSQL has a zero byte in it."""
    return model[:200].replace("\0", "\ufffd") if model else None


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
            "audio_cache_read",
            "web_searches",
            "image_input",
            "image_output",
            "requests",
            "units",
        )
        if (amount := getattr(usage, name))
    }
    if usage.tier is not None:
        counted["tier"] = usage.tier[:32]
    counted["price"] = verdict.price.id
    if usage.units:
        counted["unit"] = usage.unit
    if verdict.absorbed:
        counted["absorbed"] = 1
    if verdict.stated:
        counted["stated"] = 1
    if verdict.doubt is not None:
        counted["doubt"] = verdict.doubt
    return counted
