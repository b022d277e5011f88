"""`/connections/{id}/…`: a call to a connection's origin, with the token that the caller never sees.

Path and query go as they came. A redirect is an answer like any other: nothing is followed, so no token leaves
its origin.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from infra.kit.errors import AlcoveError
from infra.kit.relay import (
    Headers,
    ProtocolUpstream,
    RelayRequest,
    RelayResponse,
    Timeouts,
    end_to_end,
)
from metering_proxy.egress.budget import Allowance
from metering_proxy.egress.connections import Connections
from metering_proxy.egress.metrics import EgressMetrics
from metering_proxy.egress.outside import Outside
from metering_proxy.egress.ways import Ways
from metering_proxy.tenant_side import headers
from metering_proxy.tenant_side.exchange import Exchange

_log = logging.getLogger(__name__)
PREFIX = "/connections/"
# What tells who the caller is, to us or to somebody before us; a cookie would be another's credential.
_NOT_SENT = frozenset(
    ("authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "host", "forwarded",
     "traceparent", "tracestate", "baggage", "x-real-ip")
)  # fmt: skip
_NOT_SENT_PREFIXES = ("x-alcove-", "x-forwarded-")
_TIMEOUTS = Timeouts(connect_s=15.0)
_Entry = tuple[str, str, str]


class Forwarding:
    """Sends calls on. Connections to an origin are kept open for one tenant's connection, and for no other."""

    def __init__(
        self,
        ways: Ways,
        connections: Connections,
        outside: Outside,
        metrics: EgressMetrics,
        *,
        timeouts: Timeouts | None = None,
    ) -> None:
        self._ways, self._connections, self._outside = ways, connections, outside
        self._metrics, self._timeouts = metrics, timeouts or _TIMEOUTS
        self._upstreams: dict[_Entry, ProtocolUpstream] = {}
        self._users: Counter[_Entry] = Counter()

    async def answer(self, exchange: Exchange, tenant: str, secret: str, call_id: str) -> None:
        """Answers one call. `secret`: the key that the caller showed, which goes no further.

        Raises what `Ways.admit`, `Connections.find`, `Ways.enter`, `Outside.dial` and the relay raise.
        """
        standing, rules = self._ways.admit(tenant, anonymous=False)
        connection, slash, rest = exchange.target.removeprefix(PREFIX).partition("/")
        if not slash:
            raise AlcoveError("not_found", "there is nothing at this path", reason="no_such_path")
        credential = await self._connections.find(tenant, connection)
        async with self._ways.enter(tenant, standing, rules, "calls") as allowance:
            body = await exchange.body()
            await allowance.spend(len(body))
            sent = [*_passed(exchange.every_header, secret)]
            sent.append(("authorization", f"Bearer {credential.token}"))
            request = RelayRequest(exchange.method, f"/{rest}", sent, body)
            async with self._upstream((tenant, connection, credential.origin)) as upstream:
                response = await upstream.open(request)
                exchange.let_body_go()
                try:
                    with self._told(connection, response.status, len(body), allowance):
                        await self._pass_on(exchange, response, allowance, tenant, call_id)
                finally:
                    await response.close()

    async def _pass_on(
        self,
        exchange: Exchange,
        response: RelayResponse,
        allowance: Allowance,
        tenant: str,
        call_id: str,
    ) -> None:
        ours = [("x-alcove-request-id", call_id)]
        told = headers.to_caller(response.headers, ours=ours, resized=False)
        await exchange.start(response.status, told)
        async for chunk in response.chunks():
            self._ways.admit(tenant, anonymous=False)  # or it is cut at the next byte
            await allowance.spend(len(chunk))
            await exchange.write(chunk)
        exchange.end()

    async def close(self) -> None:
        """Closes every connection."""
        await asyncio.gather(*(upstream.close() for upstream in self._upstreams.values()))
        self._upstreams.clear()

    @contextmanager
    def _told(self, connection: str, status: int, up: int, allowance: Allowance) -> Iterator[None]:
        """Counts and logs a call, however the block ends."""
        began_s, ending = time.perf_counter(), "cut"
        try:
            yield
            ending = "closed"
        finally:
            down = allowance.passed - up
            self._metrics.ended("call", ending, up, down)
            told = {"connection": connection, "status": status, "ending": ending}
            seconds = round(time.perf_counter() - began_s, 3)
            _log.info("connection call", extra={**told, "down_bytes": down, "s": seconds})

    @asynccontextmanager
    async def _upstream(self, entry: _Entry) -> AsyncIterator[ProtocolUpstream]:
        """The way to an origin, kept while the block runs and while connections of it rest."""
        self._users[entry] += 1
        try:
            if entry not in self._upstreams:
                await self._tidy()
                self._upstreams[entry] = ProtocolUpstream(
                    entry[2],
                    timeouts=self._timeouts,
                    tls=self._outside.tls,
                    dial=self._outside.dial,
                )
            yield self._upstreams[entry]
        finally:
            self._users[entry] -= 1

    async def _tidy(self) -> None:
        """Forgets the ways that nobody uses and no connection rests on."""
        for entry, upstream in list(self._upstreams.items()):
            if not self._users[entry] and not upstream.pool.resting:
                del self._upstreams[entry], self._users[entry]
                await upstream.close()


def _passed(given: Headers, secret: str) -> Headers:
    return [
        (name, value)
        for name, value in end_to_end(given)
        if name not in _NOT_SENT and not name.startswith(_NOT_SENT_PREFIXES) and secret not in value
    ]
