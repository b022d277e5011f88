"""One request to a tenant's agent and its answer, with nothing crossing that should not.

Towards the agent: a fixed few headers, the instance's secret, the request's id. From the agent: a
status, a JSON body of bounded size, nothing else. The agent is not trusted: whatever it sends that
is not such an answer is `bad_gateway` here, and no header of its making reaches a browser.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass

import orjson

from gateway.limits import Limits
from gateway.metrics import GatewayMetrics
from gateway.relay.instances import Instances
from gateway.relay.upstreams import Upstreams
from infra.kit import log, tracing
from infra.kit.errors import AlcoveError
from infra.kit.relay import Headers, RelayRequest, RelayResponse
from infra.kit.weight import too_heavy
from spawner.wire import Instance

_TO_AGENT = ("accept", "content-type")
_OUTCOMES = {"unavailable": "not_ready", "timeout": "timeout"}
_ON_ITS_WAY = ("creating", "starting", "ready")
# A page of 100 messages with 100 calls of tools each has some 120,000 values.
_MOST_VALUES, _MOST_MARKS = 200_000, 1_000_000


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked of an agent. `target` is a path of ours with the query as it came."""

    method: str
    target: str
    headers: Headers = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an agent said: a status and JSON, byte for byte (empty with 204)."""

    status: int
    body: bytes


class Relay:
    """Sends calls to agents that are awake. Never wakes one."""

    def __init__(
        self, instances: Instances, upstreams: Upstreams, limits: Limits, metrics: GatewayMetrics
    ) -> None:
        self._instances, self._upstreams, self._limits = instances, upstreams, limits
        self._metrics = metrics
        self._in_flight: Counter[str] = Counter()

    async def send(self, tenant: str, call: Call) -> Answer:
        """The agent's answer.

        Raises `unavailable` (reason `agent_waking`, `agent_asleep`: nothing was sent), `bad_gateway`
        (reason `agent_answer`: it said what may not pass, or broke off), `timeout`, `rate_limited`.
        """
        if self._in_flight[tenant] >= self._limits.relay_in_flight:
            raise AlcoveError("rate_limited", "too many requests at once", retry_after_s=1)
        self._in_flight[tenant] += 1
        try:
            answer = await self._send(tenant, call)
        except AlcoveError as error:
            self._metrics.relayed.labels(_OUTCOMES.get(error.code, "refused")).inc()
            raise
        else:
            self._metrics.relayed.labels("answered").inc()
            return answer
        finally:
            self._in_flight[tenant] -= 1
            if not self._in_flight[tenant]:
                del self._in_flight[tenant]

    async def _send(self, tenant: str, call: Call) -> Answer:
        instance = await self._instances.current(tenant)
        try:
            return await self._once(instance, call)
        except AlcoveError as error:
            if error.reason != "unreachable":
                raise
        self._instances.forget(instance)
        instance = await self._instances.ask(tenant)
        try:
            return await self._once(instance, call)
        except AlcoveError as error:
            if error.reason == "unreachable":
                raise not_ready(instance) from None
            raise

    async def _once(self, instance: Instance, call: Call) -> Answer:
        if instance.state != "ready" or not instance.url:
            raise not_ready(instance)
        secret = self._upstreams.secret(instance)
        # What is asked of an agent may be asked twice: whoever writes brings an id (docs/contracts.md).
        headers = headers_for(secret, call)
        request = RelayRequest(call.method, call.target, headers, call.body, replayable=True)
        try:
            async with asyncio.timeout(self._limits.relay_total_s):
                response = await self._upstreams.of(instance).open(request)
                try:
                    body = await self._body(response)
                finally:
                    await response.close()
        except TimeoutError:
            raise AlcoveError("timeout", "your assistant did not answer in time") from None
        return checked(response, body)

    async def _body(self, response: RelayResponse) -> bytes:
        parts, size = [], 0
        async for chunk in response.chunks():
            size += len(chunk)
            if size > self._limits.relay_answer_bytes:
                raise refused("too long")
            parts.append(chunk)
        return b"".join(parts)


def headers_for(secret: str, call: Call) -> list[tuple[str, str]]:
    """The headers that an agent is sent: cookies, forwarding and identity headers are not among them."""
    kept = [(k.lower(), v) for k, v in call.headers if k.lower() in _TO_AGENT]
    request_id = log.context().get("request_id")
    ours = [("host", "agent"), ("authorization", f"Bearer {secret}"), *tracing.headers().items()]
    if request_id:
        ours.append(("x-request-id", request_id))
    return kept + ours


def checked(response: RelayResponse, body: bytes) -> Answer:
    """The answer, if it is one that may pass. Raises `bad_gateway`."""
    headers: dict[str, list[str]] = {}
    for key, value in response.headers:
        headers.setdefault(key.lower(), []).append(value)
    status = response.status
    if status == 204 and not body:
        return Answer(204, b"")
    # A 401 of the agent is between it and us; passed on, it would sign the person out.
    if not (200 <= status < 300 or 400 <= status < 600) or status in (204, 205, 206, 401, 407):
        raise refused(f"status {status}")
    kinds = headers.get("content-type", [])
    if len(kinds) != 1 or kinds[0].split(";")[0].strip().lower() != "application/json":
        raise refused("not JSON by its type")
    if "content-encoding" in headers:
        raise refused("encoded")
    if too_heavy(body, _MOST_VALUES, most_marks=_MOST_MARKS):
        raise refused("too many values")
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        raise refused("not JSON") from None
    return Answer(status, body)


def not_ready(instance: Instance) -> AlcoveError:
    """Why this instance cannot be asked now, as the page understands it."""
    if instance.state in _ON_ITS_WAY:
        return AlcoveError("unavailable", "Your assistant is waking up.", reason="agent_waking")
    return AlcoveError("unavailable", "Your assistant is asleep.", reason="agent_asleep")


def refused(why: str) -> AlcoveError:
    """An answer that may not pass."""
    return AlcoveError(
        "bad_gateway",
        "Your assistant gave an answer that we cannot pass on.",
        reason="agent_answer",
        why=why,
    )
