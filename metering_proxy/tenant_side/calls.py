"""One call, from a whole request to one ending: admit → route → hold, then send → pass on → settle (sending.py).

The order is the promise: nothing is sent before a hold is durable, and whatever happens after that ends in exactly
one settlement, which the ledger's writer makes even if this task is gone.
"""

import asyncio
import math
import time
from collections.abc import Sequence
from typing import Any

from infra.kit.clock import Clock
from infra.kit.errors import AlcoveError
from metering_proxy.keys import Key
from metering_proxy.ledger.ledger import Hold, Ledger
from metering_proxy.ledger.ops import Refused
from metering_proxy.own_keys import OwnKeys
from metering_proxy.providers.breakers import Breakers
from metering_proxy.providers.catalog import Catalog, Route
from metering_proxy.providers.upstreams import Upstreams
from metering_proxy.telemetry import Telemetry
from metering_proxy.tenant_side import headers
from metering_proxy.tenant_side.call_state import Call
from metering_proxy.tenant_side.exchange import Exchange
from metering_proxy.tenant_side.no_room import refused
from metering_proxy.tenant_side.sending import Sending
from metering_proxy.tenant_side.terms import Terms, agree, reserve_op
from metering_proxy.tenants import Standing, Tenants
from metering_proxy.wires.wire import Ask, Envelope, Wire

# How long an answer is read on after its caller has left: what was generated is billed, so it is counted.
DRAIN_S = 120.0


class Calls:
    """Answers calls."""

    def __init__(
        self,
        *,
        tenants: Tenants,
        catalog: Catalog,
        own_keys: OwnKeys,
        upstreams: Upstreams,
        breakers: Breakers,
        ledger: Ledger,
        telemetry: Telemetry,
        clock: Clock,
        drain_s: float = DRAIN_S,
    ) -> None:
        self._tenants, self._catalog, self._own_keys = tenants, catalog, own_keys
        self._breakers, self._ledger, self._telemetry = breakers, ledger, telemetry
        self._clock = clock
        self._sending = Sending(upstreams, breakers, ledger, telemetry, drain_s)
        telemetry.watch(ledger.running, breakers)
        self._running: set[asyncio.Task[Any]] = set()

    async def answer(
        self, exchange: Exchange, wire: Wire, named: str, key: Key, call_id: str
    ) -> None:
        """Answers one call. Raises the refusal, or the failure that cuts an answer which has begun.

        `named`: the model that the path names, empty where the body does.
        Once something is held the call goes on to its end, whether or not its caller stays.
        """
        call = await self._begun(exchange, wire, named, key, call_id)
        exchange.outlive()
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        try:
            await self._run(call, exchange)
        finally:
            self._running.discard(task)

    async def _begun(
        self, exchange: Exchange, wire: Wire, named: str, key: Key, call_id: str
    ) -> Call:
        """Reads a request and holds for it. Nothing else keeps its body: it may be large, and the call long."""
        self._tenants.standing(key.tenant).admit()
        headers.check_unpacked(exchange)
        body = await exchange.body()
        standing = self._tenants.standing(key.tenant)  # by now: a body may take two minutes to come
        standing.admit()
        began_s, started_at = time.perf_counter(), self._clock.now_at()
        # Two are joined to one that no reader takes.
        content_type = ", ".join(exchange.headers("content-type"))
        ask = wire.read(body, Envelope(named, exchange.query, content_type))
        routes = await self._catalog.routes(ask.model, wire.name, ask.kind, started_at)
        others = self._agreed(ask, routes, standing, key, started_at)
        agreed = self._first(others)
        hold = await self._hold(agreed, others, wire, key, call_id)
        reader = wire.reader(ask, agreed.route.connection.kind.dialect)
        return Call(call_id, wire, key, agreed, hold, reader, began_s, others)

    def _agreed(
        self, ask: Ask, routes: Sequence[Route], standing: Standing, key: Key, at: int
    ) -> list[Terms]:
        """The terms of each model that may answer. One that somebody else would pay is none of them.

        Raises as `agree` and `OwnKeys.applied`, and `forbidden` (reason `model_not_allowed`) for a model that the
        key is not for.
        """
        found: list[Terms] = []
        for n, wanted in enumerate(routes):
            try:
                route, payer = self._own_keys.applied(wanted, key.tenant)
                key.check(route.model.id)
                agreed = agree(ask, route, standing, at, payer)
            except AlcoveError:
                if n == 0:
                    raise
            else:
                if not found or found[0].payer == payer:
                    found.append(agreed)
        return found

    def _first(self, agreed: list[Terms]) -> Terms:
        """Takes the first that may be called now out of the list, with those before it.

        Raises `unavailable` (reason `provider_resting`) where every provider has failed again and again.
        """
        everyone = list(agreed)
        while agreed:
            found = agreed.pop(0)
            if self._breakers.admits(found.breaker):
                return found
        rest_s = min(self._breakers.rest_s(one.breaker) for one in everyone)
        raise AlcoveError(
            "unavailable",
            "the provider has failed again and again, and is left alone for a while",
            reason="provider_resting",
            retry_after_s=max(1, math.ceil(rest_s)),
        )

    async def _hold(
        self, agreed: Terms, others: list[Terms], wire: Wire, key: Key, call_id: str
    ) -> Hold:
        """Holds for whichever may answer. Where that is too much, those of `others` that may cost more than the
        model called are taken out of them, and what is left is held for."""
        op = reserve_op(agreed, wire.name, key.tenant, call_id, others)
        try:
            answer = await self._ledger.reserve(op)
            if isinstance(answer, Refused) and any(one.may_exceed(agreed) for one in others):
                others[:] = [one for one in others if not one.may_exceed(agreed)]
                op = reserve_op(agreed, wire.name, key.tenant, call_id, others)
                answer = await self._ledger.reserve(op)
            if isinstance(answer, Refused):
                raise refused(answer, op, agreed.limit_member)
        except BaseException:
            self._breakers.undecided(agreed.breaker)
            raise
        return answer

    async def _run(self, call: Call, exchange: Exchange) -> None:
        if not self._telemetry.traces:
            await self._sending.carry_out(call, exchange)
            return
        route, traceparent = call.terms.route, exchange.header("traceparent")
        operation, provider = call.wire.operation, route.connection.id
        with self._telemetry.span(operation, provider, route.model.id, traceparent) as span:
            call.span = span
            await self._sending.carry_out(call, exchange)

    async def close(self) -> None:
        """Cuts the calls that still run, at the end of the process; each of them settles."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
