"""The gateway's own Prometheus metrics. A label never names a tenant or a person."""

from prometheus_client import Counter, Gauge

from infra.kit.metrics import Metrics

DOORS = ("sign_up", "sign_in", "setup", "password_link")
OPENINGS = ("opened", "refused", "throttled")
RELAYED = ("answered", "not_ready", "refused", "timeout")
HANDED_OVER = ("delivered", "failed")


class GatewayMetrics(Metrics):
    """What every service counts, and doors, relayed calls and waiting messages. Labels exist from the start."""

    def __init__(self) -> None:
        super().__init__("gateway")
        self.doors = Counter(
            "gateway_doors_total",
            "Attempts to get in, by door and outcome.",
            ("door", "outcome"),
            registry=self.registry,
        )
        self.relayed = Counter(
            "gateway_relayed_total",
            "Calls relayed to agents: answered, agent not ready, answer refused, no answer in time.",
            ("outcome",),
            registry=self.registry,
        )
        self.kept = Counter(
            "gateway_messages_kept_total",
            "Messages kept because their agent was not ready.",
            registry=self.registry,
        )
        self.handed_over = Counter(
            "gateway_messages_handed_over_total",
            "Kept messages that reached their agent, or could not.",
            ("outcome",),
            registry=self.registry,
        )
        self.changes_due = Gauge(
            "gateway_changes_not_heard",
            "Changes of tenants that a room has not heard of, by room, when last looked.",
            ("room",),
            registry=self.registry,
        )
        for door in DOORS:
            for outcome in OPENINGS:
                self.doors.labels(door, outcome)
        for outcome in RELAYED:
            self.relayed.labels(outcome)
        for outcome in HANDED_OVER:
            self.handed_over.labels(outcome)
