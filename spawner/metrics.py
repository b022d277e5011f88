"""The spawner's own Prometheus metrics. A label never names a tenant."""

from collections.abc import Mapping
from typing import get_args

from prometheus_client import Counter, Gauge, Histogram

from infra.kit.metrics import Metrics
from spawner import wire


class SpawnerMetrics(Metrics):
    """What every service counts, and starts, deaths, orphans and the queue. Labels exist from the start."""

    def __init__(self) -> None:
        super().__init__("spawner")
        self.instances = Gauge(
            "spawner_instances", "Instances by state.", ("state",), registry=self.registry
        )
        self.queue = Gauge(
            "spawner_queued_starts", "Starts that wait for a place.", registry=self.registry
        )
        self.paused = Gauge(
            "spawner_starts_paused",
            "1 while no start begins, since the last ones failed for everybody.",
            registry=self.registry,
        )
        self.pauses = Counter(
            "spawner_start_pauses_total",
            "How often starting was paused.",
            registry=self.registry,
        )
        self.start_seconds = Histogram(
            "spawner_start_duration_seconds",
            "From the runtime having an instance to its agent answering.",
            buckets=(0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60),
            registry=self.registry,
        )
        self.start_failures = Counter(
            "spawner_start_failures_total",
            "Starts that failed, by the phase they had come to.",
            ("phase",),
            registry=self.registry,
        )
        self.deaths = Counter(
            "spawner_deaths_total",
            "Ready instances that ended without being asked.",
            ("cause",),
            registry=self.registry,
        )
        self.culled = Counter(
            "spawner_culled_total", "Instances put to sleep for idleness.", registry=self.registry
        )
        self.orphans = Counter(
            "spawner_orphans_removed_total",
            "Instances that no row stood for.",
            registry=self.registry,
        )
        self.engine_seconds = Histogram(
            "spawner_engine_duration_seconds",
            "Calls of the container engine.",
            ("call", "outcome"),
            registry=self.registry,
        )
        self.storage = Gauge(
            "spawner_storage_tenants",
            "Tenants of the last measurement near their limit of storage, past it, or not measurable.",
            ("level",),
            registry=self.registry,
        )
        self.stored(near=0, full=0, unmeasured=0)
        for state in get_args(wire.State):
            self.instances.labels(state)
        for phase in get_args(wire.Phase):
            self.start_failures.labels(phase)

    def started(self, ms: int) -> None:
        """Counts a start that came to its end."""
        self.start_seconds.observe(ms / 1000)

    def stored(self, *, near: int, full: int, unmeasured: int) -> None:
        """Sets what the last measurement of tenants' data found."""
        for level, count in (("near", near), ("full", full), ("unmeasured", unmeasured)):
            self.storage.labels(level).set(count)

    def counted(self, by_state: Mapping[str, int], queued: int) -> None:
        """Sets the gauges to what the database holds."""
        for state in get_args(wire.State):
            self.instances.labels(state).set(by_state.get(state, 0))
        self.queue.set(queued)
