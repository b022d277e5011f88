"""How a call ends: what the ledger, the breakers, the metrics and the log are told of it."""

import logging
import time

from metering_proxy.ledger.ledger import Ledger
from metering_proxy.ledger.ops import NOT_SENT, Settle
from metering_proxy.providers.breakers import Breakers
from metering_proxy.providers.catalog import Route
from metering_proxy.telemetry import Telemetry, describe
from metering_proxy.tenant_side import settling
from metering_proxy.tenant_side.call_state import Call
from metering_proxy.tenant_side.settling import Verdict

_log = logging.getLogger(__name__)
PROVIDERS = frozenset(("unreachable", "first_byte", "broken", "malformed", "cut", "idle"))
"""Reasons of failures that are the provider's own; our pool may be full without its doing."""
_KEY_REFUSED = frozenset((401, 402, 403))


class Endings:
    """Ends calls."""

    def __init__(self, ledger: Ledger, breakers: Breakers, telemetry: Telemetry) -> None:
        self._ledger, self._breakers, self._telemetry = ledger, breakers, telemetry

    def release(self, call: Call) -> None:
        """Nothing was sent: the hold goes back. What failed is entered all the same, so that it can be found."""
        if call.failure is None:
            self._ledger.release(call.hold)
        else:
            self._ledger.settle(_entry(call, NOT_SENT)[1])
        self._judge(call)
        self._count(call, NOT_SENT)

    def settle(self, call: Call) -> None:
        """Charges what was used, whatever the ending was."""
        call.settled = True
        verdict, op = _entry(call, call.outcome)
        self._ledger.settle(op)
        self._judge(call)
        self._count(call, call.outcome)
        route = call.terms.route
        self._tell(route, call.terms.payer, op.cost_nanos, verdict)
        describe(call.span, verdict.usage, op.response_model, call.outcome)
        if _log.isEnabledFor(logging.INFO):
            _log.info(
                "call",
                extra={
                    "wire": call.wire.name,
                    "model": route.model.id,
                    "status": call.status,
                    "outcome": call.outcome,
                    "failure": call.failure,
                    "estimated": verdict.estimated,
                    "input_tokens": verdict.usage.total_input,
                    "output_tokens": verdict.usage.output,
                    "charge_nanos": op.charge_nanos,
                    "limit": call.limit,
                    "ms": round((time.perf_counter() - call.began_s) * 1000, 1),
                },
            )

    def gave_up(self, call: Call) -> Settle:
        """An attempt failed and another one follows: the model's breaker learns of it. What is to be entered."""
        self._judge(call)
        route, outcome = call.terms.route, call.outcome if call.sent else NOT_SENT
        self._telemetry.fallbacks.labels(route.connection.id, route.model.id, outcome).inc()
        return _entry(call, outcome)[1]

    def _judge(self, call: Call) -> None:
        """Tells the model's breaker what came of the attempt."""
        key, outcome = call.terms.breaker, call.outcome
        if outcome == "complete":
            self._breakers.succeeded(key)
        elif outcome == "error" or call.blamed or is_overloaded(call.status):
            self._breakers.failed(key, call.failure or outcome)
        elif call.status in _KEY_REFUSED:
            self._breakers.refused(key, call.failure or outcome)
        else:
            self._breakers.undecided(key)

    def _tell(self, route: Route, payer: str, cost_nanos: int, verdict: Verdict) -> None:
        """Counts what the call used and cost, and what is doubtful about it."""
        telemetry, provider = self._telemetry, route.connection.id
        telemetry.used(verdict.usage)
        telemetry.count(telemetry.cost, provider, route.model.id, payer, by=cost_nanos)
        if verdict.estimated is not None:
            telemetry.count(telemetry.estimated, verdict.estimated)
        if verdict.unknown_tier:
            telemetry.unpriced.inc()
        if verdict.doubt is not None:
            telemetry.count(telemetry.doubtful, provider, verdict.doubt)

    def _count(self, call: Call, outcome: str) -> None:
        route = call.terms.route
        labels = (call.wire.name, route.connection.id, route.model.id, outcome)
        self._telemetry.count(self._telemetry.requests, *labels)


def _entry(call: Call, outcome: str) -> tuple[Verdict, Settle]:
    """What an attempt used, and what is asked of the ledger for it."""
    verdict = settling.verdict(call.terms, call.reader.found, outcome, call.limit)
    return verdict, settling.settle_op(call.id, call.terms, verdict, outcome, call.failure)


def is_overloaded(status: int) -> bool:
    """Whether a provider says that it, and not its asker, is in trouble."""
    return status == 429 or status >= 500
