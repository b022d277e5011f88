"""Shapes of reports from the ledger."""

from typing import Literal

from pydantic import Field

from metering_proxy.wire.shape import Shape

SpendSort = Literal["charge_today", "charge_month"]
Order = Literal["asc", "desc"]


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
    payer: str | None = None


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
    offset: int = Field(default=0, ge=0, le=2**53)
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


class RequestRow(Shape):
    """One ended call as its entry of usage says; corrections of it are in its detail.

    `failure`: a word for what went wrong (`unreachable`, `http_503`, a provider's `overloaded_error`), or null.
    """

    id: str
    tenant: str
    started_at: int
    at: int
    wire: str
    provider: str
    model: str
    payer: str
    outcome: str
    failure: str | None = None
    estimated: bool
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    cost_nanos: int
    charge_nanos: int


class RequestRows(Shape):
    """Calls, newest first. `next`: what to ask for `before` to go on; null at the end."""

    rows: list[RequestRow]
    next: str | None


class RequestEntry(Shape):
    """One ledger entry of a request: usage of an attempt, or a correction with signed differences."""

    attempt: int
    kind: str
    at: int
    outcome: str
    provider: str
    model: str
    response_model: str | None
    price_id: str
    estimated: bool
    overrun: bool
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    cost_nanos: int
    charge_nanos: int
    grant_nanos: int
    parts: dict[str, int | str]


class RequestDetail(Shape):
    """Everything that is kept of one call. `state` and what belongs to the hold are null once it is forgotten.

    `price`: the row by which it was priced, in nano-USD a million tokens; null where the row is gone.
    """

    id: str
    tenant: str
    plan: str
    payer: str
    wire: str
    provider: str
    model: str
    price_id: str
    price: dict[str, int] | None
    state: str | None
    started_at: int
    dispatched_at: int | None
    ended_at: int | None
    charge_held_nanos: int | None
    output_limit: int | None
    markup_ppm: int
    cost_nanos: int
    charge_nanos: int
    entries: list[RequestEntry]


class RepriceRequest(Shape):
    """Price what began in `from_at` ≤ t < `to_at` by the prices that are known now. `dry_run`: only say so."""

    from_at: int = Field(ge=0, le=2**53)
    to_at: int = Field(ge=0, le=2**53)
    model: str | None = Field(default=None, max_length=264)
    tenant: str | None = None
    dry_run: bool = True


class Reprice(Shape):
    """How many requests were looked at, how many cost something else, and the differences in sum.

    `unpriced`: requests whose model has no price any more, `stated`: those whose cost the provider itself said;
    they stay as they are.
    """

    requests: int
    changed: int
    unpriced: int
    stated: int
    cost_nanos: int
    charge_nanos: int
    dry_run: bool
