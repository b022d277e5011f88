"""What crosses the wire to and from the spawner. docs/contracts.md tells the same in prose."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

State = Literal["absent", "creating", "starting", "ready", "stopping", "stopped", "failed"]
Phase = Literal[
    "queued",
    "key",
    "volume",
    "create",
    "start",
    "answering",
    "ready",
    "stopping",
    "stopped",
    "failed",
]
Reason = Literal["message", "page", "schedule", "admin"]


class Wire(BaseModel):
    """Base of the shapes here: fields that a newer side adds are ignored by an older one."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Problem(Wire):
    """Why an instance failed: a machine's word and a person's sentence."""

    code: str
    message: str


class Instance(Wire):
    """One tenant's instance as it is now. `url` is set in state `ready` only."""

    tenant: str
    state: State
    generation: int = 0
    url: str | None = None
    owner_uid: int | None = None  # the only uid that may own the socket at `url`
    plan: str
    suspended: bool = False
    runtime: str | None = None
    phase: Phase | None = None
    error: Problem | None = None
    retry_at: int | None = None  # a start asked for now begins then (back-off after failures)
    changed_at: int | None = None
    started_at: int | None = None
    last_activity_at: int | None = None
    alive_because: str | None = None
    next_schedule_at: int | None = None
    stored_bytes: int | None = None  # what its data took when it was last measured
    storage_bytes: int | None = None  # what its plan allows
    clearing_until_at: int | None = None  # it may be awake past that, so that its owner can delete
    seq: int = 0  # of its newest phase event


class PhaseEvent(Wire):
    """One numbered step of an instance's life, as the browser sees it."""

    type: Literal["CUSTOM"] = "CUSTOM"
    name: Literal["spawn.progress"] = "spawn.progress"
    seq: int
    at: int
    generation: int
    state: State
    phase: Phase
    message: str
    typical_ms: int | None = None  # how long this phase usually takes
    error: Problem | None = None


class Wake(Wire):
    """Body of `PUT /instances/{tenant}`."""

    wake: bool = True
    reason: Reason = "message"


class Activity(Wire):
    """Body of `PUT /instances/{tenant}/activity`: when a person's last byte came."""

    person_at: int = Field(ge=0)


class PlanChoice(Wire):
    """Body of `PUT /tenants/{tenant}/plan`."""

    plan: str = Field(min_length=1, max_length=32)


class InstanceQuery(Wire):
    """Body of `POST /instances/query`. With `ids`, a tenant never started is in the answer as `absent`."""

    ids: list[str] | None = Field(None, max_length=100_000)
    state: State | None = None
    sort: Literal["state", "changed_at"] = "changed_at"
    order: Literal["asc", "desc"] = "desc"
    offset: int = Field(0, ge=0)
    limit: int = Field(50, ge=1, le=1000)


class InstancePage(Wire):
    """A page of instances, and how many there are in all."""

    rows: list[Instance]
    total: int


class Probe(Wire):
    """One thing that was tried on this machine, what came of it, and what would mend it."""

    name: str
    ok: bool
    detail: str
    remedy: str | None = None


class Host(Wire):
    """How instances run here. `wall`: whether tenants are kept apart by containers."""

    runtime: str
    wall: bool
    probes: list[Probe]
    instances: dict[str, int]
