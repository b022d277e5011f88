"""The agent's log as a source: joined when there is an agent, resumed after its last number, never trusted."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import orjson

from gateway.limits import Limits
from gateway.relay.forward import Call, headers_for
from gateway.relay.instances import Instances
from gateway.relay.upstreams import Upstreams
from gateway.stream.cursor import EPOCH, Cursor
from infra.kit import sse
from infra.kit.errors import AlcoveError
from infra.kit.relay import RelayRequest, RelayResponse
from infra.kit.weight import too_heavy
from spawner.wire import Instance

log = logging.getLogger(__name__)

_TYPES = frozenset(
    (
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "TOOL_CALL_START",
        "TOOL_CALL_END",
        "RUN_FINISHED",
        "RUN_ERROR",
    )
)
# Other CUSTOM names are ours (quota, signed_out …); an agent that sends them is not heard.
_CUSTOM = frozenset(("log.reset", "conversation.updated", "conversation.deleted", "notice"))
_LONGEST_WAIT_S = 15.0
# A whole message with 100 calls of tools has some 1,200 values; what is short is not worth weighing.
_SHORT_BYTES, _MOST_VALUES, _MOST_MARKS = 65_536, 20_000, 500_000
_SLICE_BYTES, _DEAR_S, _LONGEST_REST_S = 8192, 0.005, 2.0
ENDINGS = frozenset(("RUN_FINISHED", "RUN_ERROR"))


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One event of the log, its JSON as the agent wrote it."""

    epoch: str
    seq: int
    type: str
    data: str


class AgentLog:
    """Follows one tenant's log for one tab."""

    def __init__(
        self,
        tenant: str,
        cursor: Cursor,
        instances: Instances,
        upstreams: Upstreams,
        limits: Limits,
    ) -> None:
        self._tenant, self._instances, self._upstreams = tenant, instances, upstreams
        self._limits = limits
        self._epoch, self._seq = cursor.epoch, cursor.agent_seq
        self._changed = asyncio.Event()

    def look_again(self) -> None:
        """The instance changed."""
        self._changed.set()

    async def events(self) -> AsyncIterator[LogEvent]:
        """The log's events after the cursor, across restarts of the agent; never ends, never wakes."""
        wait_s = self._limits.stream_retry_s
        while True:
            self._changed.clear()
            instance = await self._instance()
            if instance is None:
                await self._wait(30 * self._limits.stream_retry_s)
                continue
            try:
                async for event in self._follow(instance):
                    wait_s = self._limits.stream_retry_s
                    yield event
            except (AlcoveError, ValueError) as error:
                self._instances.forget(instance)
                log.info(
                    "stream.agent_lost", extra={"tenant": self._tenant, "why": str(error)[:200]}
                )
            await self._wait(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    async def _instance(self) -> Instance | None:
        try:
            instance = await self._instances.current(self._tenant)
        except AlcoveError:
            return None
        return instance if instance.state == "ready" and instance.url else None

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _follow(self, instance: Instance) -> AsyncIterator[LogEvent]:
        query: dict[str, str | int] = {"after": self._seq}
        if self._epoch is not None:
            query["epoch"] = self._epoch
        call = Call("GET", f"/api/events?{urlencode(query)}", [("accept", "text/event-stream")])
        headers = headers_for(self._upstreams.secret(instance), call)
        response = await self._upstreams.of(instance).open(
            RelayRequest(call.method, call.target, headers)
        )
        try:
            _require_stream(response)
            async for event in self._parsed(response):
                yield event
        finally:
            await response.close()

    async def _parsed(self, response: RelayResponse) -> AsyncIterator[LogEvent]:
        parser = sse.Parser(max_line_chars=self._limits.event_chars)
        useless = 0
        async for chunk in response.chunks():
            for start in range(0, len(chunk), _SLICE_BYTES):
                part = chunk[start : start + _SLICE_BYTES]
                useless += len(part)
                began_s = time.thread_time()
                found = [self._next(raw) for raw in parser.feed(part)]
                await asyncio.sleep(rest_s(time.thread_time() - began_s))
                for event in found:
                    if event is not None:
                        useless = 0
                        yield event
                if useless > 2 * self._limits.event_chars:
                    raise ValueError("nothing but noise")

    def _next(self, raw: sse.Event) -> LogEvent | None:
        """The event, if it is one and comes after the last; moves on."""
        found = read_event(raw)
        if found is None:
            return None
        seq, kind, parsed = found
        if parsed.get("name") == "log.reset" and kind == "CUSTOM":
            epoch = parsed.get("epoch")
            if not isinstance(epoch, str) or not EPOCH.fullmatch(epoch):
                raise ValueError("a log without an epoch")
            self._epoch, self._seq = epoch, seq
            return LogEvent(epoch, seq, "log.reset", raw.data)
        if self._epoch is None or seq <= self._seq:
            return None
        self._seq = seq
        return LogEvent(self._epoch, seq, kind, raw.data)


def rest_s(spent_s: float) -> float:
    """How long to leave the process to others after `spent_s` of its time on one slice.

    A slice of real events takes well below a millisecond; one of line ends alone takes twenty. So
    an agent that sends noise gets a fiftieth of a processor, and nobody else is slowed.
    """
    return 0.0 if spent_s < _DEAR_S else min(_LONGEST_REST_S, 50 * spent_s)


def read_event(raw: sse.Event) -> tuple[int, str, dict[str, Any]] | None:
    """Number, type and content of an agent's frame; None for what an agent may not say to a browser."""
    data = raw.data.encode()
    if len(data) > _SHORT_BYTES and too_heavy(data, _MOST_VALUES, most_marks=_MOST_MARKS):
        return None
    try:
        parsed = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(parsed, dict) or raw.event != "message":
        return None
    seq, kind, name = parsed.get("seq"), parsed.get("type"), parsed.get("name")
    if type(seq) is not int or not 0 <= seq < 10**15 or raw.id != str(seq):
        return None
    known = kind in _TYPES if isinstance(kind, str) else False
    custom = kind == "CUSTOM" and isinstance(name, str) and name in _CUSTOM
    return (seq, str(kind), parsed) if known or custom else None


def _require_stream(response: RelayResponse) -> None:
    kinds = [v for k, v in response.headers if k.lower() == "content-type"]
    encoded = any(k.lower() == "content-encoding" for k, _ in response.headers)
    stream = len(kinds) == 1 and kinds[0].split(";")[0].strip().lower() == "text/event-stream"
    if response.status != 200 or encoded or not stream:
        raise AlcoveError("bad_gateway", "the agent gave no event stream", reason="agent_answer")
