"""Hands waiting messages over once their agent is ready: in order, one at a time, deleted on its 202.

A second delivery is harmless, since the agent knows the client's id; so a message is deleted only
after the agent has answered, and a killed gateway begins again from its table.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from urllib.parse import quote

import orjson

from gateway.background import Background
from gateway.limits import Limits
from gateway.metrics import GatewayMetrics
from gateway.pending.store import PendingStore, Waiting
from gateway.relay.forward import Answer, Call, Relay
from gateway.relay.instances import Instances
from gateway.scope import Scope
from gateway.stream.hub import Hub
from gateway.tenants import store as tenants
from infra.kit import log, tracing
from infra.kit.clock import Clock
from infra.kit.db import Database
from infra.kit.errors import AlcoveError, from_response
from spawner.wire import Instance

_log = logging.getLogger(__name__)

_ATTEMPTS, _ATTEMPTS_TO_REACH = 5, 20
_NOT_READY = ("agent_waking", "agent_asleep", "unreachable")


class Delivery:
    """One driver a tenant, alive while something waits."""

    def __init__(
        self,
        db: Database,
        store: PendingStore,
        instances: Instances,
        relay: Relay,
        hub: Hub,
        background: Background,
        limits: Limits,
        clock: Clock,
        metrics: GatewayMetrics,
    ) -> None:
        self._db, self._store, self._instances, self._relay = db, store, instances, relay
        self._hub, self._background, self._limits, self._clock = hub, background, limits, clock
        self._metrics = metrics
        self._driving: set[str] = set()
        self._again: set[str] = set()

    async def take(self, scope: Scope, conversation_id: str, client_id: str, text: str) -> None:
        """Keeps a message and wakes the agent for it. Raises as `PendingStore.add`."""
        async with self._db.transaction() as tx:
            await self._store.add(tx, scope, conversation_id, client_id, text)
        self._metrics.kept.inc()
        self.kick(scope)

    async def something_waits(self, scope: Scope) -> bool:
        """Whether a newer message must queue behind an older one."""
        async with self._db.read() as reading:
            return await self._store.first(reading, scope) is not None

    def kick(self, scope: Scope) -> None:
        """Sees to it that somebody hands over what waits."""
        self._hub.tell(scope.tenant, "pending")
        if scope.tenant in self._driving:
            self._again.add(scope.tenant)  # it may have looked just before this message came
            return
        self._driving.add(scope.tenant)
        self._background.start(self._drive(scope), "delivery")

    async def resume(self) -> None:
        """The job: takes up what another process, or this one before its end, left waiting."""
        async with self._db.read() as reading:
            waiting = await self._store.tenants_waiting(reading)
            scopes = [
                await tenants.scope_of(reading, tenant)
                for tenant in waiting
                if tenant not in self._driving
            ]
        for scope in scopes:
            self.kick(scope)

    async def _drive(self, scope: Scope) -> None:
        attempts = 0
        try:
            while True:
                self._again.discard(scope.tenant)
                message = await self._first(scope)
                if message is None and scope.tenant not in self._again:
                    return
                if message is None:
                    continue
                with _as_its_request(message):
                    try:
                        await self._become_ready(scope.tenant)
                    except AlcoveError as error:
                        await self._fail(scope, error)
                        continue
                    attempts += 1
                    settled = await self._hand_over(scope, message, attempts)
                if settled:
                    attempts = 0
                else:
                    await asyncio.sleep(self._limits.pending_poll_s * 2 ** min(attempts, 5))
        finally:
            self._driving.discard(scope.tenant)

    async def _first(self, scope: Scope) -> Waiting | None:
        async with self._db.read() as reading:
            return await self._store.first(reading, scope)

    async def _become_ready(self, tenant: str) -> None:
        """Wakes the agent and waits until it is ready. Raises why it cannot be."""
        give_up_s = self._clock.monotonic_s() + self._limits.pending_give_up_s
        asked: Instance | None = None
        while True:
            wait_s = self._limits.pending_poll_s
            try:
                # asked again while a start is held back (after failures, or for lack of a place)
                if asked is None or asked.state in ("failed", "stopped", "absent"):
                    before, asked = asked, await self._instances.wake(tenant, "message")
                    now = asked
                else:
                    before, now = asked, await self._instances.ask(tenant)
            except AlcoveError as error:
                late = self._clock.monotonic_s() > give_up_s
                if late or error.code not in ("unavailable", "timeout", "internal"):
                    raise
            else:
                if now.state == "ready":
                    return
                held_back = now.state == "failed" and _is_held_back(before, now)
                late = self._clock.monotonic_s() > give_up_s
                if late or (now.state == "failed" and not held_back):
                    raise _why_failed(now)
                if now.state in ("stopped", "absent"):
                    asked = now
                wait_s *= 5 if held_back else 1
            await asyncio.sleep(wait_s)

    async def _hand_over(self, scope: Scope, message: Waiting, attempts: int) -> bool:
        """Whether the message is settled: taken by the agent, or refused by it for good."""
        try:
            answer = await self._relay.send(scope.tenant, _call(message))
        except AlcoveError as error:
            most = _ATTEMPTS_TO_REACH if error.reason in _NOT_READY else _ATTEMPTS
            if attempts >= most:
                await self._fail(scope, error, message.client_message_id)
                return True
            return False
        if answer.status in (200, 202):
            async with self._db.transaction() as tx:
                await self._store.remove(tx, scope, message.client_message_id)
            self._metrics.handed_over.labels("delivered").inc()
            self._hub.tell(scope.tenant, "pending")
            return True
        if (answer.status >= 500 or answer.status == 429) and attempts < _ATTEMPTS:
            return False
        await self._fail(scope, _as_error(answer), message.client_message_id)
        return True

    async def _fail(self, scope: Scope, error: AlcoveError, client_id: str | None = None) -> None:
        self._metrics.handed_over.labels("failed").inc()
        _log.warning("pending.failed", extra={"tenant": scope.tenant, "code": error.code})
        async with self._db.transaction() as tx:
            await self._store.fail(tx, scope, error, client_id)
        self._hub.tell(scope.tenant, "pending")


@contextlib.contextmanager
def _as_its_request(message: Waiting) -> Iterator[None]:
    """Inside, what is logged, asked and traced carries the ids of the request that brought the message."""
    ids = {"request_id": message.request_id} if message.request_id else {}
    with log.bound(**ids), tracing.continued(message.traceparent):
        yield


def _call(message: Waiting) -> Call:
    body = {
        "client_message_id": message.client_message_id,
        "text": message.text,
        "channel": "web",
        "source": "user",
    }
    target = f"/api/conversations/{quote(message.conversation_id, safe='')}/messages"
    return Call("POST", target, [("content-type", "application/json")], orjson.dumps(body))


def _is_held_back(before: Instance | None, now: Instance) -> bool:
    """Whether a failed instance is an older start's, whose back-off holds ours until `retry_at`."""
    if now.retry_at is None:
        return False
    return before is None or (before.state == "failed" and before.generation == now.generation)


def _why_failed(instance: Instance) -> AlcoveError:
    if instance.error is not None:
        return AlcoveError("unavailable", instance.error.message, reason=instance.error.code)
    return AlcoveError("unavailable", "Your assistant did not wake up in time.", reason="slow_wake")


def _as_error(answer: Answer) -> AlcoveError:
    return from_response(answer.status, orjson.loads(answer.body) if answer.body else None)
