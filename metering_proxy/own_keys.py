"""Tenants' own keys to providers: sealed in rows, open in memory for the calls of that tenant alone, never told.

A call with one is paid to the provider by the tenant: it costs, and is not charged.
"""

import logging
from collections.abc import Collection
from dataclasses import replace

from sqlalchemy import ColumnElement, RowMapping, delete, insert, select

from infra.kit.clock import Clock
from infra.kit.db import Database, Reading
from infra.kit.errors import AlcoveError, field_error
from infra.kit.seal import Sealer
from metering_proxy import changes, wire
from metering_proxy.models import own_key
from metering_proxy.providers.catalog import Route
from metering_proxy.providers.connections import Connection
from metering_proxy.providers.providers import Providers
from metering_proxy.tenant_side.terms import OPERATOR, TENANT

_log = logging.getLogger(__name__)
_UNREADABLE = ""  # as a key in memory


class OwnKeys:
    """Every tenant's own keys. One that cannot be opened stops the calls that would use it, and nobody else's."""

    def __init__(self, db: Database, sealer: Sealer, providers: Providers, clock: Clock) -> None:
        self._db, self._sealer, self._providers, self._clock = db, sealer, providers, clock
        self._keys: dict[tuple[str, str], str] = {}
        self._in_turn = changes.InTurn(db)

    async def load(self) -> None:
        """Reads every row anew."""
        async with self._in_turn.read() as reading:
            self._keys = await self._read(reading, None)

    async def refresh(self, tenants: Collection[str]) -> None:
        """Reads these tenants' rows anew."""
        async with self._in_turn.read() as reading:
            read = await self._read(reading, tenants)
            others = {name: key for name, key in self._keys.items() if name[0] not in tenants}
            self._keys = others | read

    def applied(self, route: Route, tenant: str) -> tuple[Route, str]:
        """The route with the tenant's own key where it has one, and who pays the provider.

        Raises `forbidden` (reason `own_key_unreadable`): the operator's key is not taken in its place.
        """
        key = self._keys.get((tenant, route.connection.id))
        if key is None:
            return route, OPERATOR
        if key == _UNREADABLE:
            raise AlcoveError(
                "forbidden",
                "your own key to this provider cannot be read any more: set it anew, or remove it",
                reason="own_key_unreadable",
            )
        return replace(route, connection=replace(route.connection, key=key)), TENANT

    def tried(self, provider: str, key: str) -> Connection:
        """The connection as a call with that key would use it; nothing is kept. Raises as `put`."""
        return replace(self._providers.get(provider), key=_checked(key))

    async def put(self, tenant: str, provider: str, key: str) -> wire.OwnKey:
        """Seals a key for a connection, in the place of one before it. Raises `not_found`, `invalid` (key)."""
        self._providers.get(provider)
        text = _checked(key)
        hint = text[-4:] if len(text) >= 12 else "****"
        shown = wire.OwnKey(provider=provider, hint=hint, set_at=self._clock.now_at())
        sealed = self._sealer.seal(text, context(tenant, provider))
        row = {"tenant": tenant, "sealed_key": sealed, **shown.model_dump()}
        async with self._db.transaction() as tx:
            await tx.alone(context(tenant, provider))
            await tx.execute(delete(own_key).where(*_is(tenant, provider)))
            await tx.execute(insert(own_key).values(row))
            await changes.note(tx, "own_key", tenant)
        await self.refresh([tenant])
        return shown

    async def delete(self, tenant: str, provider: str) -> None:
        """Forgets a key; no error where there is none."""
        async with self._db.transaction() as tx:
            await tx.execute(delete(own_key).where(*_is(tenant, provider)))
            await changes.note(tx, "own_key", tenant)
        await self.refresh([tenant])

    async def listed(self, tenant: str) -> wire.OwnKeys:
        """Which own keys a tenant has, by their last four characters."""
        mine = select(own_key).where(own_key.c.tenant == tenant).order_by(own_key.c.provider)
        async with self._db.read() as reading:
            rows = await reading.rows(mine)
        return wire.OwnKeys(
            keys=[
                wire.OwnKey(provider=row["provider"], hint=row["hint"], set_at=row["set_at"])
                for row in rows
            ]
        )

    async def _read(
        self, reading: Reading, tenants: Collection[str] | None
    ) -> dict[tuple[str, str], str]:
        wanted = select(own_key)
        if tenants is not None:
            wanted = wanted.where(own_key.c.tenant.in_(tenants))
        rows = await reading.rows(wanted)
        return {(row["tenant"], row["provider"]): self._opened(row) for row in rows}

    def _opened(self, row: RowMapping) -> str:
        try:
            return self._sealer.open(row["sealed_key"], context(row["tenant"], row["provider"]))
        except AlcoveError as error:
            whose = {"tenant": row["tenant"], "provider": row["provider"]}
            _log.error("own key not opened", extra={**whose, "problem": error.message})
            return _UNREADABLE


def _checked(key: str) -> str:
    text = key.strip()
    if not text.isascii() or not text.isprintable() or " " in text or len(text) < 8:
        raise field_error("key", "a key has at least eight characters, no spaces, no special ones")
    return text


def context(tenant: str, provider: str) -> str:
    """What a sealed key is bound to: it opens nothing in another row."""
    return f"own_key/{tenant}/{provider}"


def _is(tenant: str, provider: str) -> tuple[ColumnElement[bool], ...]:
    return own_key.c.tenant == tenant, own_key.c.provider == provider
