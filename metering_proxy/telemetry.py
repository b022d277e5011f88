"""What the meter counts and traces. Names: metering facts 1.7. Never a tenant label, never text or keys."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from opentelemetry.trace import Span, SpanKind
from prometheus_client import Counter, Gauge, Histogram, Metric
from prometheus_client.registry import Collector

from infra.kit.metrics import Metrics
from infra.kit.tracing import Tracing
from metering_proxy.ledger.ledger import Hold
from metering_proxy.pricing import Usage
from metering_proxy.providers.breakers import Breakers

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class _AddingUp(Collector):
    """Adds to counters what was counted since they were asked last; has nothing to tell of its own."""

    def __init__(self, counted: dict[tuple[Counter, tuple[str, ...]], int]) -> None:
        self._counted = counted

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        while self._counted:
            (counter, labels), number = self._counted.popitem()
            (counter.labels(*labels) if labels else counter).inc(number)
        return ()


class Telemetry:
    """The meter's own metrics, beside those of every service, and the spans of calls."""

    def __init__(self, metrics: Metrics, tracing: Tracing) -> None:
        registry = metrics.registry
        self._tracing = tracing
        self._counted: dict[tuple[Counter, tuple[str, ...]], int] = {}
        registry.register(_AddingUp(self._counted))  # before the counters, which are asked after it
        self.requests = Counter(
            "meter_requests_total",
            "Calls by how they ended.",
            ("wire", "provider", "model", "outcome"),
            registry=registry,
        )
        self.refusals = Counter(
            "meter_refusals_total", "Calls refused here.", ("wire", "reason"), registry=registry
        )
        self.tokens = Counter("meter_tokens_total", "Tokens by kind.", ("kind",), registry=registry)
        self.cost = Counter(
            "meter_cost_nanousd_total",
            "Cost in nano-USD.",
            ("provider", "model", "payer"),
            registry=registry,
        )
        self.overhead = Histogram(
            "meter_overhead_seconds",
            "From a whole request to its first byte towards the provider.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.ttft = Histogram(
            "meter_ttft_seconds",
            "From a whole request to the first byte of the answer's body.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.open = Gauge("meter_reservations_open", "Calls under way here.", registry=registry)
        self.reserved = Gauge(
            "meter_reserved_nanousd", "Charge that calls under way here hold.", registry=registry
        )
        self.fallbacks = Counter(
            "meter_fallbacks_total",
            "Attempts that failed before their caller got a byte, and were made good by another model.",
            ("provider", "model", "outcome"),
            registry=registry,
        )
        self.breakers = Gauge(
            "meter_breakers_open", "Models that are left alone for a while.", registry=registry
        )
        self.estimated = Counter(
            "meter_settle_estimated_total",
            "Calls charged by estimate.",
            ("reason",),
            registry=registry,
        )
        self.unpriced = Counter(
            "meter_unpriced_total",
            "Service tiers that were served and have no price: charged at the dearest.",
            registry=registry,
        )
        self.doubtful = Counter(
            "meter_usage_doubtful_total",
            "Calls whose provider's numbers left something open, or did not fit the cost that it stated.",
            ("provider", "doubt"),
            registry=registry,
        )
        self.marks = Counter(
            "meter_limit_marks_total",
            "Times that a tenant's use of a limit passed a mark.",
            ("kind", "percent"),
            registry=registry,
        )
        self.reloads = Counter(
            "meter_reloads_total",
            "Plan and price files taken up, or refused.",
            ("file", "outcome"),
            registry=registry,
        )
        self.drift = Gauge(
            "meter_ledger_drift_nanousd",
            "By how much sums and entries differed at the last proof.",
            registry=registry,
        )
        self.parse_errors = Counter(
            "meter_stream_parse_errors_total",
            "Streams that were passed on unread from some point.",
            registry=registry,
        )

    def count(self, counter: Counter, *labels: str, by: int = 1) -> None:
        """Counts in a plain dictionary, which is added to the counters when somebody asks: every call counts six
        times, and a counter's lock and the search for its labels cost more than the counting."""
        key = (counter, labels)
        self._counted[key] = self._counted.get(key, 0) + by

    def used(self, usage: Usage) -> None:
        """Counts a call's tokens."""
        for kind, tokens in (
            ("input", usage.input + usage.audio_input + usage.image_input),
            ("cache_read", usage.cached),
            ("cache_write", usage.cache_write_5m + usage.cache_write_1h),
            ("output", usage.generated),
        ):
            if tokens:
                self.count(self.tokens, kind, by=tokens)

    def watch(self, running: Mapping[str, Hold], breakers: Breakers) -> None:
        """Measures these when somebody asks, which costs a call nothing."""
        self.open.set_function(lambda: len(running))
        self.reserved.set_function(lambda: sum(h.charge_held_nanos for h in running.values()))
        self.breakers.set_function(lambda: breakers.open)

    @property
    def traces(self) -> bool:
        """Whether spans are recorded at all."""
        return self._tracing.enabled

    @contextmanager
    def span(
        self, operation: str, provider: str, model: str, traceparent: str | None
    ) -> Iterator[Span | None]:
        """A span around one call, where tracing is on."""
        if not self.traces:
            yield None
            return
        parent: Mapping[str, str] | None = {"traceparent": traceparent} if traceparent else None
        with self._tracing.span(
            f"{operation} {model}",
            parent=parent,
            kind=SpanKind.CLIENT,
            **{
                "gen_ai.operation.name": operation,
                "gen_ai.provider.name": provider,
                "gen_ai.request.model": model,
            },
        ) as span:
            yield span


def describe(span: Span | None, usage: Usage, response_model: str | None, outcome: str) -> None:
    """Tells a span how its call ended. Input is the total; cached parts are inside it."""
    if span is None:
        return
    span.set_attribute("gen_ai.usage.input_tokens", usage.total_input)
    span.set_attribute("gen_ai.usage.cache_read.input_tokens", usage.cached)
    span.set_attribute(
        "gen_ai.usage.cache_creation.input_tokens", usage.cache_write_5m + usage.cache_write_1h
    )
    span.set_attribute("gen_ai.usage.output_tokens", usage.total - usage.total_input)
    if response_model:
        span.set_attribute("gen_ai.response.model", response_model)
    if outcome != "complete":
        span.set_attribute("error.type", outcome)
