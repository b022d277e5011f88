"""What one tab is told: the sources merged under one cursor, our own states between them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any

import orjson

from gateway.accounts.sessions import Identity
from gateway.limits import Limits
from gateway.pending.store import PendingStore
from gateway.quota import Quotas
from gateway.relay.instances import Instances
from gateway.relay.upstreams import Upstreams
from gateway.stream.agent_log import ENDINGS, AgentLog, LogEvent
from gateway.stream.cursor import Cursor
from gateway.stream.hub import Listener
from gateway.stream.phases import Phases
from infra.kit import sse
from infra.kit.clock import Clock
from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from spawner.client import SpawnerClient
from spawner.wire import Instance, PhaseEvent

_WAITING = 64  # events of the sources that a slow tab may leave waiting; then the sources wait
_SETTLED_S = 0.5  # the meter settles a turn's last call about when its end is told


@dataclass(frozen=True, slots=True)
class Rooms:
    """What a tab listens to."""

    db: Database
    pending: PendingStore
    quotas: Quotas
    instances: Instances
    upstreams: Upstreams
    spawner: SpawnerClient
    limits: Limits
    clock: Clock


class Tab:
    """One stream from its first byte to its last."""

    def __init__(
        self, rooms: Rooms, identity: Identity, listener: Listener, cursor: Cursor
    ) -> None:
        self._rooms, self._identity, self._listener, self._cursor = (
            rooms,
            identity,
            listener,
            cursor,
        )
        tenant, limits = identity.tenant, rooms.limits
        self._log = AgentLog(tenant, cursor, rooms.instances, rooms.upstreams, limits)
        self._phases = Phases(tenant, cursor, rooms.spawner, limits)
        self._queue: asyncio.Queue[LogEvent | PhaseEvent] = asyncio.Queue(_WAITING)
        self._told_quota = self._told_pending = self._told_instance = b""
        self._settling = False  # a turn has ended whose last call may not be settled yet
        self._known_phase = 0
        now_s = asyncio.get_running_loop().time()
        self._heartbeat_s = now_s + limits.stream_heartbeat_s
        self._quota_s = now_s + limits.stream_quota_s

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """The bytes to send. Ends when the listener is told to; never wakes the agent."""
        yield b": alcove\nretry: 1000\n\n"
        for state in (await self._pending(), await self._instance(), await self._quota()):
            if state:
                yield state
        sources = [asyncio.create_task(s) for s in (self._pump_log(), self._pump_phases())]
        try:
            while self._listener.ending is None:
                await self._something()
                async for frame in self._due():
                    yield frame
            if self._listener.ending != "closing":
                yield _state("signed_out", reason=self._listener.ending)
        finally:
            for source in sources:
                source.cancel()
            await asyncio.gather(*sources, return_exceptions=True)

    async def _something(self) -> None:
        """Waits for an event, a change, an ending, or the next moment that is due."""
        now_s = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(max(0.0, min(self._heartbeat_s, self._quota_s) - now_s)):
                await self._listener.signal.wait()
        except TimeoutError:
            return
        self._listener.signal.clear()

    async def _due(self) -> AsyncIterator[bytes]:
        for _ in range(
            self._queue.qsize()
        ):  # those of now: what a flood adds waits for the next round
            if self._listener.ending is not None:
                return
            event = self._queue.get_nowait()
            if isinstance(event, LogEvent):
                yield self._log_frame(event)
            else:
                for frame in self._phase_frames(event):
                    yield frame
        changed, self._listener.changed = self._listener.changed, set()
        now_s = asyncio.get_running_loop().time()
        if "pending" in changed and (state := await self._pending()):
            yield state
        if "quota" in changed or (self._settling and now_s >= self._quota_s):
            self._rooms.quotas.forget(self._identity.tenant)
        if "quota" in changed or now_s >= self._quota_s:
            self._quota_s = now_s + self._rooms.limits.stream_quota_s
            if state := await self._quota():
                yield state
        if now_s >= self._heartbeat_s:
            self._heartbeat_s = now_s + self._rooms.limits.stream_heartbeat_s
            yield _state("heartbeat", at=self._rooms.clock.now_at())
            if state := await self._pending():  # of other gateways' making
                yield state

    def _log_frame(self, event: LogEvent) -> bytes:
        self._cursor = self._cursor.with_agent(event.epoch, event.seq)
        if event.type in ENDINGS:
            self._settling = True
            self._ask_quota_soon()
        return sse.frame(event.data, event_id=str(self._cursor))

    def _phase_frames(self, event: PhaseEvent) -> list[bytes]:
        self._cursor = self._cursor.with_spawner(event.seq)
        frames = [sse.frame(event.model_dump_json(), event_id=str(self._cursor))]
        if event.seq > self._known_phase:
            error = event.error.model_dump() if event.error else None
            state = _state("instance", state=event.state, generation=event.generation, error=error)
            if state != self._told_instance:
                self._told_instance = state
                frames.append(state)
        return frames

    async def _instance(self) -> bytes:
        try:
            instance = await self._rooms.instances.current(self._identity.tenant)
        except AlcoveError:
            return b""
        self._known_phase = instance.seq
        self._phases.begin_with(instance.generation)
        self._told_instance = _instance_state(instance)
        return self._told_instance

    async def _pending(self) -> bytes:
        async with self._rooms.db.read() as reading:
            waiting = await self._rooms.pending.listing(reading, self._identity.scope)
        state = _state("pending", messages=[message.as_json() for message in waiting])
        if state == self._told_pending:
            return b""
        self._told_pending = state
        return state

    async def _quota(self) -> bytes:
        try:
            view = await self._rooms.quotas.of(self._identity.tenant)
            title = await self._rooms.quotas.title(view.plan)
        except AlcoveError:
            return b""
        state = _frame(view.for_stream(title))
        if self._settling and view.held_nanos:  # its last call still holds money
            self._ask_quota_soon()
        else:
            self._settling = False
        if state == self._told_quota:
            return b""
        self._told_quota = state
        return state

    def _ask_quota_soon(self) -> None:
        self._quota_s = min(self._quota_s, asyncio.get_running_loop().time() + _SETTLED_S)

    async def _pump_log(self) -> None:
        async for event in self._log.events():
            await self._put(event)

    async def _pump_phases(self) -> None:
        async for event in self._phases.events():
            if event.state != "ready":
                self._rooms.instances.heard(self._identity.tenant, event.generation)
            if event.phase in ("ready", "stopped", "failed"):
                self._log.look_again()
            await self._put(event)

    async def _put(self, event: LogEvent | PhaseEvent) -> None:
        await self._queue.put(event)
        self._listener.signal.set()


def _state(name: str, **fields: Any) -> bytes:
    return _frame({"type": "CUSTOM", "name": name, **fields})


def _frame(content: dict[str, Any]) -> bytes:
    return sse.frame(orjson.dumps(content).decode())


def _instance_state(instance: Instance) -> bytes:
    error = instance.error.model_dump() if instance.error else None
    return _state("instance", state=instance.state, generation=instance.generation, error=error)
