"""From a hold to its ending: send, pass the answer on while a copy is read, settle.

An attempt that fails before its caller has got a byte of it is entered, and the next model of the chain is called
under the same hold. After the first byte nothing is ever sent again.
"""

import time

from infra.kit.errors import AlcoveError
from infra.kit.relay import RelayRequest, RelayResponse
from metering_proxy.ledger.ledger import Ledger
from metering_proxy.providers.breakers import Breakers
from metering_proxy.providers.upstreams import Upstreams
from metering_proxy.telemetry import Telemetry
from metering_proxy.tenant_side import headers, settling
from metering_proxy.tenant_side.call_state import Call
from metering_proxy.tenant_side.ending import PROVIDERS, Endings, is_overloaded
from metering_proxy.tenant_side.exchange import Exchange
from metering_proxy.tenant_side.outlet import MOST_HELD_BYTES, MOST_HELD_WHOLE_BYTES, Outlet
from metering_proxy.tenant_side.pump import Pump
from metering_proxy.tenant_side.tee import Framing, Tee, framing_of
from metering_proxy.tenant_side.terms import Terms

# Reasons of failures after which the provider has seen nothing of the call.
_NEVER_SENT = frozenset(("unreachable", "saturated"))


class _Failed(Exception):
    """An attempt failed before its caller got a byte of it, and `onward` is what comes next."""

    def __init__(self, onward: Terms) -> None:
        self.onward = onward


class Sending:
    """Carries calls out. `drain_s`: how long an answer is read on after its caller has left."""

    def __init__(
        self,
        upstreams: Upstreams,
        breakers: Breakers,
        ledger: Ledger,
        telemetry: Telemetry,
        drain_s: float,
    ) -> None:
        self._upstreams, self._breakers, self._ledger = upstreams, breakers, ledger
        self._telemetry, self._drain_s = telemetry, drain_s
        self._endings = Endings(ledger, breakers, telemetry)

    async def carry_out(self, call: Call, exchange: Exchange) -> None:
        """Sends the call until an attempt does not fail, and ends it in one way, whatever is raised on the way."""
        try:
            while True:
                try:
                    await self._send(call, exchange)
                    return
                except _Failed as failed:
                    await self._go_on(call, failed.onward)
        finally:
            if not call.sent:
                self._endings.release(call)
            elif not call.settled:
                self._endings.settle(call)

    def _onward(self, call: Call, exchange: Exchange) -> Terms | None:
        """What to try next in place of the attempt that has failed, if anything."""
        while call.others and not exchange.gone:
            onward = call.others.pop(0)
            if self._breakers.admits(onward.breaker):
                return onward
        return None

    async def _go_on(self, call: Call, onward: Terms) -> None:
        """Enters the attempt that failed, and begins the next. Raises `unavailable` where the hold is gone."""
        op = settling.reroute_op(self._endings.gave_up(call), onward)
        call.go_on(onward)
        if not await self._ledger.reroute(op):
            raise AlcoveError("unavailable", "the hold ran out before the call", reason="lease")

    async def _send(self, call: Call, exchange: Exchange) -> None:
        request = _request(call, exchange)
        async with self._upstreams.use(call.terms.route.connection) as upstream:
            self._telemetry.overhead.observe(time.perf_counter() - call.began_s)
            call.sent = True
            try:
                response = await upstream.open(request)
            except AlcoveError as error:
                call.sent = error.reason not in _NEVER_SENT
                self._broken(call, exchange, error)
                raise
            del request  # its body may be large, and the answer long
            try:
                call.status = response.status
                await self._pass_on(call, exchange, response)
            finally:
                await response.close()

    def _broken(self, call: Call, exchange: Exchange, error: AlcoveError) -> None:
        """Notes whose fault a failure is. Raises _Failed where the call can go on elsewhere."""
        call.broke(error.reason, blamed=error.reason in PROVIDERS)
        retriable = call.blamed or error.reason in _NEVER_SENT
        if retriable and (onward := self._onward(call, exchange)) is not None:
            raise _Failed(onward) from error

    async def _pass_on(self, call: Call, exchange: Exchange, response: RelayResponse) -> None:
        """Passes the answer on as it comes, reads a copy, settles, and only then lets it end."""
        good = 200 <= response.status < 300
        call.outcome = "cut" if good else "provider_error"
        call.failure = None if good else f"http_{response.status}"
        if is_overloaded(response.status) and (onward := self._onward(call, exchange)) is not None:
            raise _Failed(onward)
        served = call.terms.route.connection.kind.dialect.tier_header
        call.reader.found.tier = (headers.one(response.headers, served) if served else "") or None
        content_type = headers.one(response.headers, "content-type")
        framing = _framing(call, content_type) if good else "unread"
        encoding = headers.one(response.headers, "content-encoding")
        tee = Tee(
            call.reader,
            framing=framing,
            encoding=encoding,
            strip=call.terms.strips,
            sniffs=call.terms.ask.stream or call.terms.ask.kind == "chat",
            secret=call.terms.route.connection.key,
        )
        resized = framing == "events" and call.terms.strips
        told = headers.to_caller(
            response.headers, ours=call.terms.announced(call.id, call.limit), resized=resized
        )
        most = MOST_HELD_WHOLE_BYTES if framing == "whole" else MOST_HELD_BYTES
        held = most if good and call.others else 0
        outlet = Outlet(exchange, response.status, told, most_held_bytes=held)
        if not outlet.holding:
            await self._open(call, outlet, exchange)
        call.hold.look = tee.seen
        try:
            pump = Pump(call, tee, outlet, exchange, self._ledger, self._telemetry, self._drain_s)
            await self._pump(call, exchange, response, pump)
            rest = b"" if pump.given_up else tee.end()
        except AlcoveError as error:
            if outlet.holding:
                self._broken(call, exchange, error)
                await self._open(call, outlet, exchange)
            call.broke(error.reason, blamed=error.reason in PROVIDERS)
            await exchange.write(tee.cut())
            raise
        finally:
            call.hold.look = None
            tee.conclude()
            if tee.unread:
                self._telemetry.parse_errors.inc()
        if call.outcome == "cut":
            call.ended(gone=exchange.gone)
        if outlet.holding:
            await self._decide(call, exchange, outlet)
        self._endings.settle(call)
        await exchange.write(rest)
        exchange.end()

    async def _open(self, call: Call, outlet: Outlet, exchange: Exchange) -> None:
        """The answer is its caller's now, so the request will not be sent again."""
        call.let_body_go()
        exchange.let_body_go()
        await outlet.open()

    async def _decide(self, call: Call, exchange: Exchange, outlet: Outlet) -> None:
        """Opens an answer that was held back, unless it is but an error and the call can go on elsewhere."""
        found = call.reader.found
        if found.failed and not found.text_bytes:
            onward = self._onward(call, exchange)
            if onward is not None:
                call.errs()
                raise _Failed(onward)
        await self._open(call, outlet, exchange)

    async def _pump(
        self, call: Call, exchange: Exchange, response: RelayResponse, pump: Pump
    ) -> None:
        while not await response.push(pump.take):
            if pump.outlet.holding:
                await self._decide(call, exchange, pump.outlet)
            elif exchange.gone:
                if not pump.reads_on():
                    call.outcome = "left"
                    return
            else:
                await exchange.drained()


def _request(call: Call, exchange: Exchange) -> RelayRequest:
    """What this attempt sends."""
    terms, wire = call.terms, call.wire.name
    connection, content_type = terms.route.connection, terms.ask.document.content_type
    passed = headers.to_provider(exchange, connection, wire, content_type, encoded=not terms.strips)
    return RelayRequest("POST", terms.path(wire), passed, terms.body(call.limit))


def _framing(call: Call, content_type: str) -> Framing:
    ask = call.terms.ask
    return framing_of(content_type, array=ask.array, sound=ask.kind == "speech")
