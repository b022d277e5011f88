"""Spans of this agent's work: made here, kept in a ring, fetched by whoever exports them (`GET /spans`).

An agent has no network, so it exports nothing itself. Attributes are names, ids and sizes, never text.
"""

import re
import secrets
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

_KEEP = 512
_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


@dataclass(slots=True)
class Span:
    """One piece of work, under way or finished."""

    name: str
    trace_id: str
    parent_id: str
    span_id: str = field(default_factory=lambda: secrets.token_hex(8))
    start_nanos: int = field(default_factory=time.time_ns)
    end_nanos: int = 0
    error: str | None = None
    attributes: dict[str, str | int] = field(default_factory=dict)

    def otlp(self) -> dict[str, Any]:
        """The span as OTLP's JSON has it (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding)."""
        return {
            "traceId": self.trace_id,
            "spanId": self.span_id,
            "parentSpanId": self.parent_id,
            "name": self.name,
            "kind": 1,
            "startTimeUnixNano": str(self.start_nanos),
            "endTimeUnixNano": str(self.end_nanos),
            "attributes": [_attribute(k, v) for k, v in self.attributes.items()],
            "status": {"code": 2, "message": self.error} if self.error else {"code": 1},
        }


def _attribute(key: str, value: str | int) -> dict[str, Any]:
    typed = {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}
    return {"key": key, "value": typed}


class Trace:
    """One turn's work, in the trace of the request that made it. `parent_id`: the span that new ones are in."""

    def __init__(self, spans: "Spans", traceparent: str | None, request_id: str) -> None:
        known = _TRACEPARENT.fullmatch(traceparent or "")
        self._spans = spans
        self._trace_id = known[1] if known else secrets.token_hex(16)
        self._parent_id = known[2] if known else ""
        self._flags = known[3] if known else "01"
        self._request_id = request_id

    @contextmanager
    def span(self, name: str, **attributes: str | int) -> Iterator[Span]:
        """A span around the block; spans begun inside are its children. An exception is noted by its name."""
        with self.leaf(name, **attributes) as span:
            outer, self._parent_id = self._parent_id, span.span_id
            try:
                yield span
            finally:
                self._parent_id = outer

    @contextmanager
    def leaf(self, name: str, **attributes: str | int) -> Iterator[Span]:
        """A span that has no children, so that several can be open side by side."""
        span = Span(name, self._trace_id, self._parent_id, attributes=dict(attributes))
        try:
            yield span
        except BaseException as error:
            span.error = type(error).__name__
            raise
        finally:
            span.end_nanos = time.time_ns()
            self._spans.finished(span)

    def headers(self) -> dict[str, str]:
        """What a request made now carries on: who asked first, and the span that asks."""
        headers = {"x-request-id": self._request_id}
        if self._parent_id:
            headers["traceparent"] = f"00-{self._trace_id}-{self._parent_id}-{self._flags}"
        return headers


class Spans:
    """The last finished spans, numbered."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, Span]] = deque(maxlen=_KEEP)
        self._last = 0

    def finished(self, span: Span) -> None:
        """Keeps a finished span."""
        self._last += 1
        self._kept.append((self._last, span))

    def after(self, number: int) -> dict[str, Any]:
        """The spans behind `number` as one OTLP request, and the number to ask from next time."""
        found = [span.otlp() for n, span in self._kept if n > number]
        resource = {"attributes": [_attribute("service.name", "agent")]}
        scope = [{"scope": {"name": "agent"}, "spans": found}]
        batches = [{"resource": resource, "scopeSpans": scope}] if found else []
        return {"last": self._last, "resourceSpans": batches}

    def trace(self, traceparent: str | None, request_id: str) -> Trace:
        """The trace of one turn."""
        return Trace(self, traceparent, request_id)
