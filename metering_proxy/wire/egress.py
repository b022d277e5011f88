"""Shapes about ways out: connections to other people's services, and what a tenant took of its day."""

from pydantic import Field

from metering_proxy.wire.shape import Shape

_MOST_AT = 2**53


class TokenConnectionRequest(Shape):
    """Where a tenant's access token may be sent, and the token. It goes in and never comes out."""

    origin: str = Field(min_length=1, max_length=300)
    token: str = Field(min_length=1, max_length=8_192, repr=False)
    expires_at: int | None = Field(default=None, ge=0, le=_MOST_AT)


class TokenConnection(Shape):
    """A connection, without its token."""

    tenant: str
    id: str
    origin: str
    expires_at: int | None
    set_at: int


class TokenConnections(Shape):
    """A tenant's connections."""

    connections: list[TokenConnection]


class EgressDay(Shape):
    """What a tenant has taken of its day. `allowed`: whether CONNECT is open to it. No limit: null."""

    allowed: bool
    bytes: int
    bytes_limit: int | None
    tunnels: int
    calls: int
    resets_at: int


class EgressUse(Shape):
    """What a tenant took of one day, which began at `start_at`."""

    start_at: int
    bytes: int
    tunnels: int
    calls: int


class EgressRefusal(Shape):
    """One refusal. `target`: host and port, or `/connections/<id>`; `kind`: of an address that is not public."""

    at: int
    target: str
    reason: str
    kind: str | None = None


class EgressReason(Shape):
    """How often something was refused for one reason."""

    reason: str
    times: int
    last_at: int


class EgressTarget(EgressReason):
    """How often one target was refused for one reason."""

    target: str


class EgressRefusals(Shape):
    """What was refused since `since_at` (null: nothing), as the process knows that holds the tenant's socket.

    `targets`: the twenty asked for most, `others` counts what made room for them; `last`: the last twenty.
    """

    since_at: int | None
    total: int
    reasons: list[EgressReason]
    targets: list[EgressTarget]
    others: int
    last: list[EgressRefusal]


class EgressRecord(Shape):
    """A tenant's ways out: the last fourteen days on which something passed, newest first, and refusals."""

    days: list[EgressUse]
    refusals: EgressRefusals
