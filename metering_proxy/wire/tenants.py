"""Shapes about one tenant: its keys, what was decided about it, and what it may still do."""

from typing import Annotated, Literal

from pydantic import Field

from metering_proxy.wire.shape import Shape

Status = Literal["active", "suspended", "deleted"]
GrantKind = Literal["credit", "grace"]
_MOST_NANOS = 2**53
_MOST_AT = 2**53
_MOST_COUNT = 2**53
Pattern = Annotated[str, Field(pattern=r"^[^\s/]+/\S+$", max_length=264)]


class InstanceKeyRequest(Shape):
    """Where the listener is bound: `<sockets root>/t/<tenant>/<generation>/meter`, absolute."""

    directory: str


class InstanceKey(Shape):
    """A newly minted key, shown once."""

    key: str = Field(repr=False)
    plan: str
    status: Status


class QuotaOverride(Shape):
    """What replaces the plan's own limits. A field that is absent leaves the plan's; null means no limit.

    From `until_at` on (absent or null: never) none of it counts any more. `note`: who wants it and why, for the
    audit. A limit that the plan does not have counts from the moment at which it is set.
    """

    charge_minute_nanos: int | None = Field(default=None, ge=0, le=_MOST_NANOS)
    charge_day_nanos: int | None = Field(default=None, ge=0, le=_MOST_NANOS)
    charge_month_nanos: int | None = Field(default=None, ge=0, le=_MOST_NANOS)
    tokens_minute: int | None = Field(default=None, ge=0, le=_MOST_COUNT)
    tokens_day: int | None = Field(default=None, ge=0, le=_MOST_COUNT)
    tokens_month: int | None = Field(default=None, ge=0, le=_MOST_COUNT)
    requests_minute: int | None = Field(default=None, ge=0, le=_MOST_COUNT)
    requests_day: int | None = Field(default=None, ge=0, le=_MOST_COUNT)
    requests_month: int | None = Field(default=None, ge=0, le=_MOST_COUNT)
    concurrent: int | None = Field(default=None, ge=0, le=_MOST_COUNT)
    until_at: int | None = Field(default=None, ge=0, le=_MOST_AT)
    note: str = Field(default="", max_length=200)

    def limits(self) -> dict[str, int | None]:
        """The limits that are said, by their names."""
        said = self.model_dump(exclude_unset=True, exclude={"until_at", "note"})
        return {name.removesuffix("_nanos"): value for name, value in said.items()}


class TenantState(Shape):
    """What the gateway has decided about a tenant. `version` grows with each decision; the highest wins.

    `egress`: whether it may send anonymous traffic out (CONNECT); no, until somebody said so.
    """

    plan: str
    status: Status
    version: int = Field(ge=0, le=2**62)
    quota: QuotaOverride = QuotaOverride()
    egress: bool = False


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


class LimitState(Shape):
    """One limit by its name (`tokens_day`) in its measure's unit, and the window that counts for it now."""

    kind: str
    limit: int | None
    spent: int
    held: int
    starts_at: int
    resets_at: int


class Mark(Shape):
    """So many percent of a limit were used in the window that began at `starts_at`; told once a window."""

    kind: str
    starts_at: int
    percent: int
    at: int


class Marks(Shape):
    """A tenant's marks, newest first."""

    marks: list[Mark]


class TenantMark(Mark):
    """The highest mark that a tenant has passed in a window that runs."""

    tenant: str


class TenantMarks(Shape):
    """Tenants that have passed a mark."""

    marks: list[TenantMark]


class GrantRequest(Shape):
    """Money beside the plan's. `grace`: a named extra that ends on a day; `credit` may stay for ever."""

    amount_nanos: int = Field(gt=0, le=_MOST_NANOS)
    expires_at: int | None = Field(default=None, ge=0, le=_MOST_AT)
    kind: GrantKind = "credit"
    note: str = Field(default="", max_length=200)


class Grant(Shape):
    """A grant and what became of it. What is revoked or has expired pays for no new call."""

    id: str
    tenant: str
    kind: GrantKind
    note: str
    amount_nanos: int
    spent_nanos: int
    held_nanos: int
    expires_at: int | None
    created_at: int
    revoked_at: int | None


class Grants(Shape):
    """A tenant's grants in the order in which they are spent; those that are over come last."""

    grants: list[Grant]


class Quota(Shape):
    """What a tenant may still do. `limits`: every limit in force; `credit_nanos`: what grants have left."""

    plan: str
    status: Status
    charge_month: MoneyWindow
    requests_minute: CountWindow
    concurrent: CountWindow
    tokens_today: int
    limits: list[LimitState] = Field(default_factory=list)
    credit_nanos: int = 0
    marks: list[Mark] = Field(default_factory=list)


class ApiKeyRequest(Shape):
    """A key for a person to hold. `models`: patterns of canonical ids (`anthropic/*`) that it may call, of those
    that the plan offers; null: all of these."""

    name: str = Field(min_length=1, max_length=80)
    expires_at: int | None = Field(default=None, ge=0, le=_MOST_AT)
    models: list[Pattern] | None = Field(default=None, min_length=1, max_length=100)


class ApiKey(Shape):
    """A key that a person holds, without the key. `hint`: its last four characters. `last_used_at`: to 30 s."""

    id: str
    name: str
    hint: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    replaces: str | None
    models: list[str] | None = None
    last_used_at: int | None = None


class NewApiKey(ApiKey):
    """A newly made key, shown once."""

    key: str = Field(repr=False)


class ApiKeys(Shape):
    """A tenant's keys, newest first."""

    keys: list[ApiKey]


class OwnKeyRequest(Shape):
    """A tenant's own key to a provider. It goes in and never comes out."""

    key: str = Field(min_length=8, max_length=512, repr=False)


class OwnKey(Shape):
    """That a tenant has its own key to a connection, and the key's last four characters."""

    provider: str
    hint: str
    set_at: int


class OwnKeys(Shape):
    """A tenant's own keys."""

    keys: list[OwnKey]


class AuditRow(Shape):
    """What an operator may have to find again: `stranger_key`, `quota_override`. `detail`: text or JSON."""

    id: str
    at: int
    tenant: str
    what: str
    detail: str


class AuditPage(Shape):
    """Rows of the audit, newest first. `next`: what to ask for `before` to go on; null at the end."""

    rows: list[AuditRow]
    next: str | None
