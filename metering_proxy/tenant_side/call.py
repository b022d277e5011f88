"""One call, from a whole request to one ending: admit → route → hold → send → pass on → settle.

The order is the promise: nothing is sent before a hold is durable and marked as sent, and whatever happens after
that ends in exactly one settlement, which the ledger's writer makes even if this task is gone.
"""

import asyncio
import logging
import time
from dataclasses import dataclass

from opentelemetry.trace import Span

from infra.kit.clock import Clock
from infra.kit.errors import AlcoveError
from infra.kit.relay import RelayRequest, RelayResponse
from metering_proxy.keys import Key
from metering_proxy.ledger.ledger import Hold, Ledger
from metering_proxy.ledger.ops import Refused
from metering_proxy.own_keys import OwnKeys
from metering_proxy.providers.catalog import Catalog
from metering_proxy.providers.upstreams import Upstreams
from metering_proxy.telemetry import Telemetry, describe
from metering_proxy.tenant_side import headers, settling
from metering_proxy.tenant_side.exchange import Exchange
from metering_proxy.tenant_side.holding import Terms, refused, reserve_op, terms
from metering_proxy.tenant_side.tee import Tee, framing_of
from metering_proxy.tenants import Tenants
from metering_proxy.wires.wire import Outside, Reader, Wire

_log = logging.getLogger(__name__)
# How long an answer is read on after its caller has left: what was generated is billed, so it is counted.
DRAIN_S = 120.0
# Reasons of failures after which the provider has seen nothing of the call.
_NEVER_SENT = frozenset(("unreachable", "saturated"))


@dataclass(slots=True)
class Call:
    """A call that holds money. `outcome` says how it ended, should it end at this moment."""

    id: str
    wire: Wire
    key: Key
    terms: Terms
    hold: Hold
    reader: Reader
    began_s: float
    span: Span | None = None
    outcome: str = "no_answer"
    status: int = 0
    sent: bool = False
    settled: bool = False


class Calls:
    """Answers calls."""

    def __init__(
        self,
        *,
        tenants: Tenants,
        catalog: Catalog,
        own_keys: OwnKeys,
        upstreams: Upstreams,
        ledger: Ledger,
        telemetry: Telemetry,
        clock: Clock,
        drain_s: float = DRAIN_S,
    ) -> None:
        self._tenants, self._catalog, self._upstreams = tenants, catalog, upstreams
        self._own_keys = own_keys
        self._ledger, self._telemetry = ledger, telemetry
        self._clock, self._drain_s = clock, drain_s
        self._running: set[asyncio.Task[None]] = set()

    async def answer(
        self, exchange: Exchange, wire: Wire, named: str, key: Key, call_id: str
    ) -> None:
        """Answers one call. Raises the refusal, or the failure that cuts an answer which has begun.

        `named`: the model that the path names, empty where the body does.
        Once something is held the call goes on by itself: a caller who leaves cancels this coroutine only.
        """
        standing = self._tenants.standing(key.tenant)
        standing.admit()
        body = await exchange.body()
        began_s, started_at = time.perf_counter(), self._clock.now_at()
        content_type = exchange.header("content-type") or ""
        ask = wire.read(body, Outside(named, exchange.query, content_type))
        route = await self._catalog.route(ask.model, wire.name, ask.kind, started_at)
        route, payer = self._own_keys.applied(route, key.tenant)
        agreed = terms(ask, route, standing, started_at, payer)
        hold = await self._hold(agreed, wire, key, call_id)
        reader = wire.reader(ask, route.connection.kind.dialect)
        call = Call(call_id, wire, key, agreed, hold, reader, began_s)
        task = asyncio.create_task(self._run(call, exchange), name=f"call-{call_id}")
        self._running.add(task)
        task.add_done_callback(self._finished)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            exchange.gone = True
            raise

    def _finished(self, task: asyncio.Task[None]) -> None:
        """Forgets a call; what it raised was for a caller who may have left."""
        self._running.discard(task)
        if not task.cancelled() and not isinstance(task.exception(), AlcoveError | None):
            _log.error("call failed", exc_info=task.exception())

    async def close(self) -> None:
        """Cuts the calls that still run, at the end of the process; each of them settles."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _run(self, call: Call, exchange: Exchange) -> None:
        route = call.terms.route
        traceparent = exchange.header("traceparent")
        operation, model = call.wire.operation, route.model.id
        with self._telemetry.span(operation, route.connection.id, model, traceparent) as span:
            call.span = span
            await self._carry_out(call, exchange)

    async def _hold(self, agreed: Terms, wire: Wire, key: Key, call_id: str) -> Hold:
        op = reserve_op(agreed, wire.name, key.tenant, call_id)
        answer = await self._ledger.reserve(op)
        if isinstance(answer, Refused):
            raise refused(answer)
        self._telemetry.open.inc()
        self._telemetry.reserved.inc(answer.charge_held_nanos)
        return answer

    async def _carry_out(self, call: Call, exchange: Exchange) -> None:
        """Sends the call and ends it in one way, whatever is raised on the way."""
        try:
            await self._send(call, exchange)
        except AlcoveError as error:
            call.sent = call.sent and error.reason not in _NEVER_SENT
            raise
        finally:
            if not call.sent:
                self._release(call)
            elif not call.settled:
                self._settle(call)

    async def _send(self, call: Call, exchange: Exchange) -> None:
        connection, wire = call.terms.route.connection, call.wire.name
        path = call.terms.path(wire)
        passed = headers.to_provider(exchange, connection, wire, encoded=not call.terms.strips)
        data = call.terms.body(call.hold.limit)
        async with self._upstreams.use(connection) as upstream:
            self._telemetry.overhead.observe(time.perf_counter() - call.began_s)
            call.sent = True
            response = await upstream.open(RelayRequest("POST", path, passed, data))
            exchange.let_body_go()
            try:
                call.status = response.status
                await self._pass_on(call, exchange, response)
            finally:
                await response.close()

    async def _pass_on(self, call: Call, exchange: Exchange, response: RelayResponse) -> None:
        """Passes the answer on as it comes, reads a copy, settles, and only then lets it end."""
        good = 200 <= response.status < 300
        content_type = headers.one(response.headers, "content-type")
        framing = framing_of(content_type, array=call.terms.ask.array) if good else "unread"
        encoding = headers.one(response.headers, "content-encoding")
        tee = Tee(call.reader, framing=framing, encoding=encoding, strip=call.terms.strips)
        resized = framing == "events" and call.terms.strips
        told = call.terms.announced(call.id, call.hold.limit)
        await exchange.start(
            response.status, headers.to_caller(response.headers, ours=told, resized=resized)
        )
        call.outcome = "cut" if good else "provider_error"
        try:
            await self._pump(call, exchange, response, tee)
        except AlcoveError:
            await exchange.write(tee.cut())
            raise
        rest = tee.end()
        if tee.unread:
            self._telemetry.parse_errors.inc()
        if call.outcome == "cut":
            failed = call.reader.found.failed
            call.outcome = "error" if failed else "left" if exchange.gone else "complete"
        self._settle(call)
        await exchange.write(rest)
        exchange.end()

    async def _pump(
        self, call: Call, exchange: Exchange, response: RelayResponse, tee: Tee
    ) -> None:
        found, hold = call.reader.found, call.hold
        first, left_s = True, 0.0
        async for chunk in response.chunks():
            out = tee.feed(chunk)
            if first:
                first = False
                self._telemetry.ttft.observe(time.perf_counter() - call.began_s)
            if found.text_bytes and not hold.seen:
                hold.seen = found.output_estimate
                self._ledger.first_output(hold)
            hold.seen = found.output_estimate
            if not exchange.gone:
                await exchange.write(out)
            elif not left_s:
                left_s = time.monotonic()
            elif time.monotonic() - left_s > self._drain_s:
                call.outcome = "left"
                return

    def _release(self, call: Call) -> None:
        self._ledger.release(call.hold)
        self._ended(call, "not_sent")

    def _settle(self, call: Call) -> None:
        call.settled = True
        verdict = settling.verdict(call.terms, call.reader.found, call.outcome)
        op = settling.settle_op(call.id, call.terms, verdict, call.outcome)
        self._ledger.settle(op)
        self._ended(call, call.outcome)
        connection, model = call.terms.route.connection.id, call.terms.route.model.id
        self._telemetry.used(verdict.usage)
        self._telemetry.cost.labels(connection, model, call.terms.payer).inc(op.cost_nanos)
        if verdict.estimated is not None:
            self._telemetry.estimated.labels(verdict.estimated).inc()
        if verdict.unknown_tier:
            self._telemetry.unpriced.inc()
        if verdict.doubt is not None:
            self._telemetry.doubtful.labels(connection, verdict.doubt).inc()
        describe(call.span, verdict.usage, op.response_model, call.outcome)
        _log.info(
            "call",
            extra={
                "wire": call.wire.name,
                "model": model,
                "status": call.status,
                "outcome": call.outcome,
                "estimated": verdict.estimated,
                "input_tokens": verdict.usage.total_input,
                "output_tokens": verdict.usage.output,
                "charge_nanos": op.charge_nanos,
                "limit": call.hold.limit,
                "ms": round((time.perf_counter() - call.began_s) * 1000, 1),
            },
        )

    def _ended(self, call: Call, outcome: str) -> None:
        route = call.terms.route
        self._telemetry.open.dec()
        self._telemetry.reserved.dec(call.hold.charge_held_nanos)
        labels = (call.wire.name, route.connection.id, route.model.id, outcome)
        self._telemetry.requests.labels(*labels).inc()
