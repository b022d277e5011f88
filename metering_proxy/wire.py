"""The shapes of the meter's control listener, for its callers. No behaviour, no tenant listener.

`_nanos` are nano-USD, `_at` milliseconds since the epoch UTC. Token counts of a row are disjoint:
`input_tokens` was neither read from nor written to a cache, so that the columns add up to all.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Status = Literal["active", "suspended", "deleted"]
ProviderKind = Literal["openai", "anthropic", "openai_compatible", "anthropic_compatible"]
SpendSort = Literal["charge_today", "charge_month"]
Order = Literal["asc", "desc"]


class Shape(BaseModel):
    """Base of every shape: an unknown field is refused, so that a slip of the pen is never silent."""

    model_config = ConfigDict(extra="forbid")


class InstanceKeyRequest(Shape):
    """Where the listener is bound: `<sockets root>/t/<tenant>/<generation>/meter`, absolute."""

    directory: str


class InstanceKey(Shape):
    """A newly minted key, shown once."""

    key: str = Field(repr=False)
    plan: str
    status: Status


class QuotaOverride(Shape):
    """What replaces the plan's own limit. A field that is absent leaves the plan's; null means no limit."""

    charge_month_nanos: int | None = Field(default=None, ge=0, le=2**53)


class TenantState(Shape):
    """What the gateway has decided about a tenant. `version` grows with each decision; the highest wins."""

    plan: str
    status: Status
    version: int = Field(ge=0, le=2**62)
    quota: QuotaOverride = QuotaOverride()


class Tenant(TenantState):
    """The row that the meter keeps."""

    tenant: str


class MoneyWindow(Shape):
    """A limit of charge: what is spent, what running calls hold, and when it begins anew. No limit: null."""

    limit_nanos: int | None
    spent_nanos: int
    held_nanos: int
    resets_at: int


class CountWindow(Shape):
    """A limit of a count. No limit: null."""

    limit: int | None
    used: int


class Quota(Shape):
    """What a tenant may still do."""

    plan: str
    status: Status
    charge_month: MoneyWindow
    requests_minute: CountWindow
    concurrent: CountWindow
    tokens_today: int


class Sums(Shape):
    """Sums over ledger entries. `estimated` counts requests whose usage no provider reported."""

    requests: int
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    cost_nanos: int
    charge_nanos: int
    estimated: int


class UsageRow(Sums):
    """One group of a usage report; what was not grouped by is null."""

    day: str | None = None
    model: str | None = None
    tenant: str | None = None
    provider: str | None = None


class Usage(Shape):
    """A usage report. `totals` come from the whole filter, not from the rows."""

    zone: str
    rows: list[UsageRow]
    totals: Sums


class TenantsQuery(Shape):
    """One page of tenants by what they spent. `ids`: the tenants that other rooms' filters left; null = all."""

    ids: list[str] | None = None
    sort: SpendSort = "charge_month"
    order: Order = "desc"
    offset: int = Field(default=0, ge=0)
    limit: int = Field(default=50, ge=1, le=1000)
    zone: str = "UTC"


class TenantSpend(Shape):
    """What one tenant spent."""

    tenant: str
    charge_today_nanos: int
    charge_month_nanos: int
    requests_month: int
    quota_limit_nanos: int | None


class SpendTotals(Shape):
    """What all tenants of a query spent."""

    charge_today_nanos: int
    charge_month_nanos: int
    requests_month: int


class TenantsPage(Shape):
    """A page of a query; `total` and `totals` cover the whole of it."""

    rows: list[TenantSpend]
    total: int
    totals: SpendTotals


class ModelRow(Shape):
    """A model that the reviewed price file does not know; prices in nano-USD a million tokens."""

    id: str = Field(min_length=1, max_length=200)
    input_nanos: int = Field(ge=0, le=2**53)
    output_nanos: int = Field(ge=0, le=2**53)
    kind: Literal["chat", "embedding"] = "chat"
    context_tokens: int = Field(default=32_768, ge=256, le=10_000_000)
    max_output_tokens: int = Field(default=4_096, ge=1, le=1_000_000)


class NewProvider(Shape):
    """A connection to make. `base_url`: absent for openai and anthropic themselves."""

    kind: ProviderKind
    name: str = Field(min_length=1, max_length=80)
    base_url: str | None = None
    key: str | None = Field(default=None, repr=False)
    default_model: str | None = None
    models: list[ModelRow] = Field(default_factory=list, max_length=500)
    make_default: bool = False
    enabled: bool = True


class ProviderChange(Shape):
    """What to change of a connection; an absent field stays. `models` replaces the whole list."""

    name: str | None = Field(default=None, min_length=1, max_length=80)
    base_url: str | None = None
    key: str | None = Field(default=None, repr=False)
    default_model: str | None = None
    models: list[ModelRow] | None = Field(default=None, max_length=500)
    make_default: bool = False
    enabled: bool | None = None


class Probe(Shape):
    """What one real call to the provider found."""

    ok: bool
    at: int
    detail: str
    latency_ms: int | None = None
    models: int | None = None


class Provider(Shape):
    """A connection, without its key. `local`: found or built in, not a row that can be changed."""

    id: str
    name: str
    kind: str
    base_url: str
    key_hint: str | None
    enabled: bool
    local: bool
    demo: bool
    default_model: str | None
    is_default: bool
    models: int
    rows: list[ModelRow]
    probe: Probe | None


class Providers(Shape):
    """All connections, those that answer first."""

    providers: list[Provider]


class Plan(Shape):
    """A plan: its limits (null = none) and its markup in parts per million."""

    name: str
    title: str
    charge_month_nanos: int | None
    requests_minute: int | None
    concurrent: int | None
    markup_ppm: int


class Plans(Shape):
    """All plans, the free one first."""

    plans: list[Plan]


class Price(Shape):
    """The price of a model from a date on (nano-USD a million tokens)."""

    id: str
    model: str
    from_at: int
    input_nanos: int
    output_nanos: int
    cache_read_nanos: int
    cache_write_5m_nanos: int
    cache_write_1h_nanos: int
    demo: bool


class Prices(Shape):
    """Every price that is in force now."""

    prices: list[Price]


class Profile(Shape):
    """What a very small model can bear."""

    system_max_tokens: int
    temperature: float
    max_tokens: int


class ModelFacts(Shape):
    """What an agent has to know of a model."""

    default: bool
    kind: Literal["chat", "embedding"]
    wire: Literal["openai", "anthropic"]
    tools: bool
    context_tokens: int
    max_output_tokens: int
    demo: bool
    profile: Profile | None


class Model(Shape):
    """A model that can be called now."""

    id: str
    object: Literal["model"] = "model"
    owned_by: str
    alcove: ModelFacts


class Models(Shape):
    """Every model that can be called now."""

    object: Literal["list"] = "list"
    data: list[Model]
