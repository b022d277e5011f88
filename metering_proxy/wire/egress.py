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
