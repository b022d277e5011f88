"""Prometheus metrics that every service has. A label never names a tenant or a person."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """The registry of one service, with what its HTTP layer and its jobs count."""

    def __init__(self, service: str) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            f"{service}_http_requests_total",
            "Requests answered, by route template.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            f"{service}_http_request_duration_seconds",
            "From the request's first byte to the answer's last.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.streams = Gauge(
            f"{service}_open_streams", "Event streams open now.", registry=self.registry
        )
        self.job_runs = Counter(
            f"{service}_job_runs_total",
            "Periodic jobs run.",
            ("job", "outcome"),
            registry=self.registry,
        )

    def render(self) -> tuple[bytes, str]:
        """The page that Prometheus scrapes, and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST
