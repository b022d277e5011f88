"""The terms of a call: what it may use at most and what is asked of the ledger for it, as values. No I/O."""

import math
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import quote

from infra.kit.errors import AlcoveError
from infra.kit.value import value
from metering_proxy import bounds, pricing
from metering_proxy.bounds import Bound
from metering_proxy.ledger.ops import Reserve, Target
from metering_proxy.pricing import Usage
from metering_proxy.providers.breakers import Key
from metering_proxy.providers.catalog import Route
from metering_proxy.tenants import Standing
from metering_proxy.wires import members
from metering_proxy.wires.openai_chat import LIMITS as OPENAI_LIMITS
from metering_proxy.wires.wire import Ask

OPERATOR = "operator"
TENANT = "tenant"


@value
class Terms:
    """What was agreed before a call: its route, its bound, and the token limit that it wants (0: none)."""

    ask: Ask
    route: Route
    standing: Standing
    started_at: int
    bound: Bound
    wanted: int
    input_estimate: int
    payer: str = OPERATOR

    @property
    def is_charged(self) -> bool:
        """Whether the tenant is charged; not where the provider has its own key and bills it itself."""
        return self.payer == OPERATOR

    def may_exceed(self, other: "Terms") -> bool:
        """Whether it may come to a larger charge, or to more tokens, than on the terms of `other`."""
        mine, theirs = self.bound, other.bound
        return mine.charge_nanos(self.wanted) > theirs.charge_nanos(other.wanted) or (
            mine.tokens(self.wanted) > theirs.tokens(other.wanted)
        )

    @property
    def breaker(self) -> Key:
        """Whose failures are counted together: a key of the tenant's own has its own troubles."""
        owner = None if self.is_charged else self.route.connection.key
        return self.route.connection.id, self.route.model.id, owner

    @property
    def strips(self) -> bool:
        """Whether the stream's usage chunk is ours to ask for and to take out."""
        return bool(self.ask.usage_edits) and self.route.connection.kind.include_usage

    @property
    def floor(self) -> int:
        """The least token limit that is worth a call; all of it where no member of the request lowers it."""
        return self.ask.floor if self.ask.kind == "chat" else self.wanted

    @property
    def limit_member(self) -> str | None:
        """Where the request says its token limit, or could; None where no member of it lowers what it may use."""
        if self.ask.kind != "chat":
            return None
        return self.ask.limit_at or self.route.connection.kind.limit_fields[0]

    @property
    def worst(self) -> Usage:
        """All that the call could use, for one that cannot be estimated any better."""
        most, image = self.bound.input_tokens, self.ask.kind == "image"
        output = self.wanted * self.ask.choices + self.ask.extra_output
        return Usage(
            input=0 if self.ask.survey.audio else most,
            audio_input=most if self.ask.survey.audio else 0,
            output=0 if image else output,
            image_output=output if image else 0,
        )

    def priced(self, unit: str) -> bool:
        """Whether the model has a price for that unit."""
        return self.route.price.counts(unit)

    def estimate(self, output: int, *, searches: int = 0, tier: str | None = None) -> Usage:
        """About what the call used whose provider never said, where so much output and so many searches were seen.

        `tier`: as the answer named it; without a name the dearest that it may have been.
        """
        counted, tier = self.ask.counted, self.route.price.assumed_tier(self.ask.tier, tier)
        if counted is None:
            return Usage(self.input_estimate, output=output, web_searches=searches, tier=tier)
        return (counted if self.priced(counted.unit) else self.worst).in_tier(tier)

    def path(self, wire_name: str) -> str:
        """Where the request goes at the provider, after its base."""
        path = self.route.connection.kind.path(wire_name, self.route.model.facts.id)
        return f"{path}?{self.ask.query}" if self.ask.query else path

    def body(self, limit: int) -> bytes:
        """The request for the provider. The token limit is written only where it is not what stands there,
        or stands where the provider does not look."""
        facts, ask, heeded = (
            self.route.model.facts,
            self.ask,
            self.route.connection.kind.limit_fields,
        )
        given, ours = ask.limit_at or heeded[0], heeded[0]
        limits: list[tuple[str, int]] = []
        if limit < self.wanted or (ask.limit is None and self.wanted > 0 and not facts.capped):
            limits.append((given, limit))
        if given in OPENAI_LIMITS and given not in heeded:
            limits.append((ours, limit))
        return ask.body(facts.id, limits, ask_usage=self.strips)

    def announced(self, call_id: str, limit: int) -> list[tuple[str, str]]:
        """Our headers of the answer."""
        ours = [("x-alcove-request-id", call_id), ("x-alcove-model", _told(self.route.model.id))]
        if limit < self.wanted:
            ours.append(("x-alcove-clamped-to", str(limit)))
        return ours


def agree(
    ask: Ask, route: Route, standing: Standing, started_at: int, payer: str = OPERATOR
) -> Terms:
    """The terms of a request. Raises `invalid` (reason `model_not_priced`) for what has no price there,
    `invalid` (reason `member_not_metered`) for a member of which nobody knows what it does there,
    `forbidden` (reason `model_not_allowed`) for a model that the plan does not offer.
    """
    for name in ask.strange:
        if name not in route.connection.kind.members:
            raise members.not_metered(name)
    facts, price = route.model.facts, route.price
    if not standing.plan.offers(route.model.id):
        raise AlcoveError(
            "forbidden", f"the plan does not offer {route.model.id}", reason="model_not_allowed"
        )
    if missing := _unpriced(ask, route):
        raise AlcoveError(
            "invalid", f"{route.model.id} has no price for {missing}", reason="model_not_priced"
        )
    most = ask.survey.bound(context=facts.bound_tokens, image_tokens=facts.image_tokens)
    reach = ask.reach(most, automatic_cache=route.connection.kind.caches_unasked)
    bound = bounds.bound(reach, price, standing.plan.markup_ppm)
    if payer != OPERATOR or ask.free:
        bound = replace(bound, input_cost=0, output_cost=0)
    if ask.free:
        bound = replace(bound, input_tokens=0)
    return Terms(
        ask=ask,
        route=route,
        standing=standing,
        started_at=started_at,
        bound=bound,
        wanted=_wanted(ask, route),
        input_estimate=ask.survey.estimate(
            context=facts.bound_tokens, image_tokens=facts.image_tokens
        ),
        payer=payer,
    )


def _told(model: str) -> str:
    """A model's id in a header, which is ASCII: other signs, and %, stand there as in a URL."""
    if model.isascii() and model.isprintable() and "%" not in model:
        return model
    return "".join(sign if " " <= sign <= "~" and sign != "%" else quote(sign) for sign in model)


def _unpriced(ask: Ask, route: Route) -> str | None:
    """What the request can make happen that its model has no price for."""
    price, counted = route.price, ask.counted
    if not price.sells_tier(ask.tier):
        return f"the service tier {ask.tier}"
    if counted is not None and price.counts(counted.unit):
        return None
    if counted is not None and not route.model.facts.max_output_tokens:
        return counted.unit.split()[0] + "s"
    if (ask.survey.audio or ask.audio_output) and price.rates.audio_input is None:
        return "audio"
    sold = not ask.searches or price.sells_searches(bounded=not ask.open_searches)
    return None if sold else "searches"


def _wanted(ask: Ask, route: Route) -> int:
    facts = route.model.facts
    if ask.kind == "embedding" or ask.free:
        return 0
    if ask.limit is None:
        return facts.max_output_tokens
    return min(ask.limit, facts.max_output_tokens) if facts.capped else ask.limit


def reserve_op(
    terms: Terms, wire_name: str, tenant: str, call_id: str, others: Sequence[Terms] = ()
) -> Reserve:
    """What is asked of the ledger, for a call that may also be answered on the terms of `others`."""
    at = terms.started_at
    windows = terms.standing.windows(at, charged=terms.is_charged)
    return Reserve(
        request_id=call_id,
        account=tenant,
        wire=wire_name,
        target=target(terms),
        payer=terms.payer,
        started_at=at,
        month_start_at=windows.month_start_at,
        windows=windows.each,
        concurrent=terms.standing.concurrent,
        bound=bounds.widest([one.bound for one in (terms, *others)]) if others else terms.bound,
        wanted=max(one.wanted for one in (terms, *others)),
        floor=terms.floor,
        markup_ppm=terms.standing.plan.markup_ppm,
        plan=terms.standing.plan.stamp,
    )


def target(terms: Terms) -> Target:
    """Where a call goes, with what its recovery would need."""
    route, price = terms.route, terms.route.price
    free, begun = terms.ask.free, terms.estimate(0)
    rate = price.rates_for(terms.input_estimate).output
    return Target(
        provider=route.connection.id,
        model=route.model.id,
        price_id=price.id,
        input_tokens=terms.input_estimate,
        input_cost_nanos=0 if free else pricing.cost_nanos(begun, price),
        output_rate_nanos=rate
        if begun.tier is None
        else math.ceil(rate * price.factor(begun.tier)),
    )
