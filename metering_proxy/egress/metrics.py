"""What is counted of ways out. Never a tenant or a host: those are many, and nobody's business."""

from typing import Literal

from prometheus_client import CollectorRegistry, Counter


class EgressMetrics:
    """Beside the meter's other metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._ended = Counter(
            "meter_egress_ways_total",
            "Tunnels and calls to connections by how they ended.",
            ("kind", "ending"),
            registry=registry,
        )
        self._bytes = Counter(
            "meter_egress_bytes_total", "Bytes passed.", ("direction",), registry=registry
        )

    def ended(self, kind: Literal["tunnel", "call"], ending: str, up: int, down: int) -> None:
        """One is over."""
        self._ended.labels(kind, ending).inc()
        self._bytes.labels("up").inc(up)
        self._bytes.labels("down").inc(down)
