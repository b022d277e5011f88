"""Shapes about providers, and what can be had through them: models, prices, plans."""

from typing import Literal

from pydantic import Field

from metering_proxy.wire.shape import Shape

# A row of providers.toml; which there are is said there alone.
ProviderKind = str
ModelKind = Literal["chat", "embedding", "image", "speech", "transcription"]


class ModelRow(Shape):
    """A model that the reviewed price file does not know; prices in nano-USD a million tokens."""

    # No blanks around it, and no control characters.
    id: str = Field(
        pattern=r"^[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?$", max_length=200
    )
    input_nanos: int = Field(ge=0, le=2**53)
    output_nanos: int = Field(ge=0, le=2**53)
    kind: Literal["chat", "embedding"] = "chat"
    context_tokens: int = Field(default=32_768, ge=256, le=10_000_000)
    max_output_tokens: int = Field(default=4_096, ge=1, le=1_000_000)


class NewProvider(Shape):
    """A connection to make. `base_url`: absent for providers whose address is known."""

    kind: ProviderKind = Field(min_length=1, max_length=32)
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


class FallbackTargets(Shape):
    """Canonical ids of models, the next one first; empty: no chain."""

    targets: list[str] = Field(max_length=8)


class Fallback(FallbackTargets):
    """What is called when `name` (a model's canonical id, or an alias) fails before it has said anything."""

    name: str


class Fallbacks(Shape):
    """All chains."""

    fallbacks: list[Fallback]


class Probe(Shape):
    """What one real call to the provider found."""

    ok: bool
    at: int
    detail: str
    latency_ms: int | None = None
    models: int | None = None


class Breaker(Shape):
    """A model of a connection whose calls fail: so many in a row, since `since_at`, the last one for `why`.

    `failing`: calls are still made. `open`: none are until `probe_at`, then one tries. `half_open`: one call
    decides, which is on its way or the next that comes. `passed_over`: calls that were not made meanwhile.
    `payer`: `tenant` where it is a key of a tenant's own that fails.
    """

    provider: str
    model: str
    payer: Literal["operator", "tenant"]
    state: Literal["failing", "open", "half_open"]
    since_at: int
    last_at: int
    failures: int
    why: str
    probe_at: int | None
    passed_over: int


class Breakers(Shape):
    """All of them, as one process of the meter sees them; what is not named works, or was not called."""

    breakers: list[Breaker]


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
    """A plan: its limits (null = none) and its markup in parts per million.

    `limits`: every one of them by name, in its measure's unit. `anchor`: windows of `zone`'s calendar,
    or windows that follow each other from the moment at which a tenant came to the plan.
    """

    name: str
    title: str
    charge_month_nanos: int | None
    requests_minute: int | None
    concurrent: int | None
    markup_ppm: int
    limits: dict[str, int] = Field(default_factory=dict)
    zone: str = "UTC"
    anchor: Literal["calendar", "rolling"] = "calendar"


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
    kind: ModelKind
    wire: Literal["openai", "anthropic", "gemini"]
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
