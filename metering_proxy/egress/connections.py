"""Tenants' connections to other people's services: an origin and a sealed access token, which the gateway pushes.

The token goes in and never comes out. It is read from its row for each call, so that a new one counts at once.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sqlalchemy import ColumnElement, delete, insert, select

from infra.kit.clock import Clock
from infra.kit.db import Database
from infra.kit.errors import AlcoveError, field_error
from infra.kit.seal import Sealer
from metering_proxy import wire
from metering_proxy.egress import names
from metering_proxy.egress.tables import token_connection as table

_ORIGIN = re.compile(r"https://[^/?#@\\\s]+")
# What may stand in a header, and is no space: wider than RFC 6750's b64token, which some servers ignore.
_TOKEN = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Credential:
    """A token, and the only origin that it is sent to."""

    origin: str
    token: str = field(repr=False)
    expires_at: int | None


class Connections:
    """The rows."""

    def __init__(self, db: Database, sealer: Sealer, clock: Clock) -> None:
        self._db, self._sealer, self._clock = db, sealer, clock

    async def put(
        self, tenant: str, connection: str, given: wire.TokenConnectionRequest
    ) -> wire.TokenConnection:
        """Seals a token for an origin, in the place of one before it. Raises `invalid` (details.fields)."""
        if not _TOKEN.fullmatch(given.token):
            raise field_error("token", "a token has no spaces and no special characters")
        shown = wire.TokenConnection(
            tenant=tenant,
            id=connection,
            origin=origin(given.origin),
            expires_at=given.expires_at,
            set_at=self._clock.now_at(),
        )
        sealed = self._sealer.seal(given.token, context(tenant, connection))
        async with self._db.transaction() as tx:
            await tx.alone(context(tenant, connection))
            await tx.execute(delete(table).where(_is(tenant, connection)))
            await tx.execute(insert(table).values(sealed_token=sealed, **shown.model_dump()))
        return shown

    async def delete(self, tenant: str, connection: str) -> None:
        """Forgets a connection and its token; no error where there is none."""
        async with self._db.transaction() as tx:
            await tx.execute(delete(table).where(_is(tenant, connection)))

    async def listed(self, tenant: str) -> wire.TokenConnections:
        """A tenant's connections, without their tokens."""
        shown = [table.c[name] for name in wire.TokenConnection.model_fields]
        mine = select(*shown).where(table.c.tenant == tenant).order_by(table.c.id)
        async with self._db.read() as reading:
            rows = await reading.rows(mine)
        return wire.TokenConnections(connections=[wire.TokenConnection(**row) for row in rows])

    async def find(self, tenant: str, connection: str) -> Credential:
        """The tenant's own connection of that id.

        Raises `not_found` (reason `no_such_connection`), `forbidden` (`connection_expired`).
        """
        async with self._db.read() as reading:
            row = await reading.row(select(table).where(_is(tenant, connection)))
        if row is None:
            raise AlcoveError(
                "not_found", "there is no connection of this id", reason="no_such_connection"
            )
        expires_at = row["expires_at"]
        if expires_at is not None and expires_at <= self._clock.now_at():
            raise AlcoveError(
                "forbidden", "the access to this service has ended", reason="connection_expired"
            )
        token = self._sealer.open(row["sealed_token"], context(tenant, connection))
        return Credential(row["origin"], token, expires_at)


def origin(given: str) -> str:
    """`https://host[:port]` in small letters. Raises `invalid`, also for http: no token is sent in the clear."""
    try:
        parts = urlsplit(given)
        port = 443 if parts.port is None else parts.port
        if not _ORIGIN.fullmatch(given) or port == 0:
            raise ValueError
        target = names.parse(f"{parts.netloc.removesuffix(f':{parts.port}')}:{port}")
    except (ValueError, AlcoveError):
        raise field_error("origin", "an origin is https://host or https://host:port") from None
    host = f"[{target.host}]" if target.address and target.address.version == 6 else target.host
    return f"https://{host}" if port == 443 else f"https://{host}:{port}"


def context(tenant: str, connection: str) -> str:
    """What a sealed token is bound to: it opens nothing in another row."""
    return f"token_connection/{tenant}/{connection}"


def _is(tenant: str, connection: str) -> ColumnElement[bool]:
    mine = table.c.tenant == tenant
    return mine & (table.c.id == connection)
