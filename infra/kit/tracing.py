"""OpenTelemetry traces, sent only where OTEL_EXPORTER_OTLP_ENDPOINT is set; ids travel either way.

https://www.w3.org/TR/trace-context/
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_LAST_SPANS_S = 2.0
_propagator = TraceContextTextMapPropagator()


class Tracing:
    """The tracer of one service."""

    def __init__(self, service: str, endpoint: str | None = None) -> None:
        self._sdk = _sdk(service, endpoint) if endpoint else None
        provider = self._sdk or trace.NoOpTracerProvider()
        self._tracer = provider.get_tracer(f"alcove.{service}")

    @property
    def enabled(self) -> bool:
        """Whether spans are recorded."""
        return self._sdk is not None

    @classmethod
    def from_environment(cls, service: str) -> "Tracing":
        """The tracer that the standard variable asks for."""
        return cls(service, os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or None)

    @contextmanager
    def span(
        self,
        name: str,
        *,
        parent: Mapping[str, str] | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        **attributes: str | int | float | bool,
    ) -> Iterator[Span]:
        """A span around the block; `parent` is a carrier with `traceparent`, else the current span."""
        context: Context | None = _propagator.extract(parent) if parent else None
        with self._tracer.start_as_current_span(
            name, context=context, kind=kind, attributes=attributes
        ) as span:
            try:
                yield span
            except Exception as error:
                span.set_status(StatusCode.ERROR, type(error).__name__)
                raise

    def close(self) -> None:
        """Sends what is waiting and stops; a collector that does not answer is given up after two seconds."""
        if self._sdk is not None:
            sending = threading.Thread(target=self._sdk.shutdown, daemon=True)
            sending.start()
            sending.join(_LAST_SPANS_S)


def _sdk(service: str, endpoint: str) -> "TracerProvider":
    """What records spans and sends them. Loaded here: it weighs megabytes, and most houses have no collector."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({"service.name": service})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


@contextmanager
def continued(traceparent: str | None) -> Iterator[None]:
    """What is done inside belongs to the trace that `traceparent` names; to none where it is None."""
    carrier = {"traceparent": traceparent} if traceparent else {}
    token = attach(_propagator.extract(carrier, Context()))
    try:
        yield
    finally:
        detach(token)


def headers() -> dict[str, str]:
    """`traceparent` (and `tracestate`) of the current span, for a call to another service."""
    carrier: dict[str, str] = {}
    if trace.get_current_span().get_span_context().is_valid:
        _propagator.inject(carrier)
    return carrier
