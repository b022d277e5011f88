"""The terms of a call: what it may use at most and what is asked of the ledger for it, as values. No I/O."""

from dataclasses import dataclass

from infra.kit.errors import AlcoveError
from metering_proxy import pricing
from metering_proxy.ledger.ops import Refused, Reserve, Window
from metering_proxy.ledger.windows import Calendar
from metering_proxy.pricing import Bound, Usage
from metering_proxy.providers.catalog import Route
from metering_proxy.tenants import Standing
from metering_proxy.wires.wire import Ask


@dataclass(frozen=True, slots=True)
class Terms:
    """What was agreed before a call: its route, its bound, and the token limit that it wants (0: none)."""

    ask: Ask
    route: Route
    standing: Standing
    started_at: int
    bound: Bound
    wanted: int
    input_estimate: int
    payer: str = "operator"

    def body(self, limit: int) -> bytes:
        """The request for the provider. The token limit is written only where it is not what stands there."""
        facts, ask = self.route.model.facts, self.ask
        clamped = limit < self.wanted
        unsaid = ask.limit is None and self.wanted > 0 and not facts.capped
        put = limit if clamped or unsaid else None
        field = ask.limit_field or self.route.connection.kind.limit_field
        return ask.body(facts.id, put, field)

    def announced(self, call_id: str, limit: int) -> list[tuple[str, str]]:
        """Our headers of the answer."""
        ours = [("x-alcove-request-id", call_id)]
        if limit < self.wanted:
            ours.append(("x-alcove-clamped-to", str(limit)))
        return ours


def terms(ask: Ask, route: Route, standing: Standing, started_at: int) -> Terms:
    """The terms of a request. Raises `invalid` (reason `model_not_priced`) for audio without a price."""
    facts, price = route.model.facts, route.price
    if (ask.survey.audio or ask.audio_output) and price.rates.audio_input is None:
        raise AlcoveError(
            "invalid", f"{route.model.id} has no price for audio", reason="model_not_priced"
        )
    most = ask.survey.bound(context=facts.bound_tokens, image_tokens=facts.image_tokens)
    reach = ask.reach(most, automatic_cache=route.connection.kind.caches_unasked)
    return Terms(
        ask=ask,
        route=route,
        standing=standing,
        started_at=started_at,
        bound=pricing.bound(reach, price, standing.plan.markup_ppm),
        wanted=_wanted(ask, route),
        input_estimate=ask.survey.estimate(
            context=facts.bound_tokens, image_tokens=facts.image_tokens
        ),
    )


def _wanted(ask: Ask, route: Route) -> int:
    facts = route.model.facts
    if ask.kind == "embedding":
        return 0
    if ask.limit is None:
        return facts.max_output_tokens
    return min(ask.limit, facts.max_output_tokens) if facts.capped else ask.limit


def reserve_op(
    terms: Terms, wire_name: str, tenant: str, call_id: str, calendar: Calendar
) -> Reserve:
    """What is asked of the ledger."""
    route, price, at = terms.route, terms.route.price, terms.started_at
    windows = []
    for limit in terms.standing.limits():
        start_at, ends_at = calendar.span(limit.period, at)
        windows.append(Window(limit.kind, limit.measure, start_at, ends_at, limit.limit))
    rates = price.rates_for(terms.input_estimate)
    return Reserve(
        request_id=call_id,
        account=tenant,
        wire=wire_name,
        provider=route.connection.id,
        model=route.model.id,
        price_id=price.id,
        payer=terms.payer,
        started_at=at,
        month_start_at=calendar.span("month", at)[0],
        windows=tuple(windows),
        concurrent=terms.standing.plan.concurrent,
        bound=terms.bound,
        wanted=terms.wanted,
        floor=terms.ask.floor,
        input_tokens=terms.input_estimate,
        input_cost_nanos=pricing.cost_nanos(Usage(input=terms.input_estimate), price),
        output_rate_nanos=rates.output,
        markup_ppm=terms.standing.plan.markup_ppm,
    )


def refused(answer: Refused) -> AlcoveError:
    """The refusal for a limit: 402 for what is used up for a day or a month, 429 for what a moment mends."""
    if answer.measure == "concurrent":
        return AlcoveError(
            "rate_limited",
            f"{answer.limit} calls are running already, as many as the plan allows at once",
            reason=answer.kind,
            retry_after_s=1,
        )
    if answer.kind.endswith("_minute"):
        return AlcoveError(
            "rate_limited",
            f"the plan allows {answer.limit:,} {answer.measure} a minute",
            reason=answer.kind,
            resets_at=answer.resets_at,
        )
    period = answer.kind.rpartition("_")[2]
    what = (
        "what the plan pays for" if answer.measure == "charge" else f"the plan's {answer.measure}"
    )
    return AlcoveError(
        "quota_exhausted",
        f"this {period} has used up {what}",
        reason=f"quota_{answer.kind}",
        resets_at=answer.resets_at,
    )
