"""Keys that people hold: made, listed by their last four characters, rotated with an overlap, revoked.

How a key opens a door is keys.py's matter. The row of a key that has ended stays.
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import func, insert, or_, select, update

from infra.kit import ids
from infra.kit.clock import Clock
from infra.kit.db import Database, Transaction
from infra.kit.errors import AlcoveError
from metering_proxy import changes, wire
from metering_proxy.keys import Keys
from metering_proxy.models import api_key

PREFIX = "alcove-key-"
OVERLAP_MS = 24 * 3_600_000
MOST = 50


class ApiKeys:
    """People's keys. Every change holds in this process when it returns, and in all within a second."""

    def __init__(self, db: Database, keys: Keys, clock: Clock) -> None:
        self._db, self._keys, self._clock = db, keys, clock

    async def create(self, tenant: str, request: wire.ApiKeyRequest) -> wire.NewApiKey:
        """A new key. Raises `invalid` (reason `expires_at`) for one that would be over, `conflict` (reason `keys`)
        where the tenant has as many as it may."""
        ends_at = request.expires_at
        if ends_at is not None and ends_at <= self._clock.now_at():
            raise AlcoveError("invalid", "this key would be over", reason="expires_at")
        async with self._transaction(tenant) as tx:
            await self._check_room(tx, tenant)
            made = await self._insert(tx, tenant, request.model_dump())
        await self._keys.refresh([tenant])
        return made

    async def listed(self, tenant: str) -> wire.ApiKeys:
        """All of a tenant's keys, newest first."""
        newest = select(api_key).order_by(api_key.c.id.desc())
        async with self._db.read() as reading:
            rows = await reading.rows(newest.where(api_key.c.tenant == tenant))
        return wire.ApiKeys(keys=[_shown(dict(row)) for row in rows])

    async def rotate(self, tenant: str, key: str) -> wire.NewApiKey:
        """A new key in the place of one, which works for a day more, and counts for as long.

        Raises `not_found`, `conflict` (reason `ended`; `rotated` where it has a successor, which lasts as long as
        it would have; or `keys` where there are as many as there may be).
        """
        async with self._transaction(tenant) as tx:
            old = await self._find(tx, tenant, key)
            now_at, until_at = self._clock.now_at(), old["expires_at"]
            if old["revoked_at"] is not None or (until_at is not None and until_at <= now_at):
                raise AlcoveError("conflict", "this key has ended", reason="ended")
            if await tx.row(select(api_key.c.id).where(api_key.c.replaces == key)) is not None:
                raise AlcoveError("conflict", "this key has a successor already", reason="rotated")
            await self._check_room(tx, tenant)
            same = {**old, "models": _models(old), "replaces": key}
            overlap_at = now_at + OVERLAP_MS
            ends_at = overlap_at if until_at is None else min(overlap_at, until_at)
            await tx.execute(update(api_key).where(api_key.c.id == key).values(expires_at=ends_at))
            made = await self._insert(tx, tenant, same)
        await self._keys.refresh([tenant])
        return made

    async def revoke(self, tenant: str, key: str) -> wire.ApiKey:
        """Ends a key; again: no change. Raises `not_found`."""
        async with self._transaction(tenant) as tx:
            found = await self._find(tx, tenant, key)
            if found["revoked_at"] is None:
                found["revoked_at"] = self._clock.now_at()
                await tx.execute(
                    update(api_key)
                    .where(api_key.c.id == key)
                    .values(revoked_at=found["revoked_at"])
                )
                await changes.note(tx, "key", tenant)
        await self._keys.refresh([tenant])
        return _shown(found)

    @asynccontextmanager
    async def _transaction(self, tenant: str) -> AsyncIterator[Transaction]:
        """One change of a tenant's keys at a time: they are counted before one is made."""
        async with self._db.transaction() as tx:
            await tx.alone(f"api_key/{tenant}")
            yield tx

    async def _check_room(self, tx: Transaction, tenant: str) -> None:
        """Raises `conflict` (reason `keys`) where as many keys work as may. One that has ended takes no place."""
        now_at = self._clock.now_at()
        live = select(func.count().label("live")).where(
            api_key.c.tenant == tenant,
            api_key.c.revoked_at.is_(None),
            or_(api_key.c.expires_at.is_(None), api_key.c.expires_at > now_at),
        )
        row = await tx.row(live)
        if row is not None and row["live"] >= MOST:
            raise AlcoveError("conflict", f"{MOST} keys are the most", reason="keys")

    async def _find(self, tx: Transaction, tenant: str, key: str) -> dict[str, Any]:
        mine = select(api_key).where(api_key.c.id == key, api_key.c.tenant == tenant)
        row = await tx.row(mine)
        if row is None:
            raise AlcoveError("not_found", "there is no such key")
        return dict(row)

    async def _insert(
        self, tx: Transaction, tenant: str, asked: Mapping[str, Any]
    ) -> wire.NewApiKey:
        """Adds a key and tells of it, as the last act of the transaction."""
        secret, models = ids.secret(PREFIX), asked["models"]
        row = {
            "id": ids.ulid(),
            "tenant": tenant,
            "name": asked["name"],
            "digest": ids.digest(secret),
            "hint": secret[-4:],
            "created_at": self._clock.now_at(),
            "expires_at": asked["expires_at"],
            "revoked_at": None,
            "replaces": asked.get("replaces"),
            "models": None if models is None else json.dumps(models),
            "last_used_at": None,
        }
        await tx.execute(insert(api_key).values(row))
        await changes.note(tx, "key", tenant)
        return wire.NewApiKey(key=secret, **_shown(row).model_dump())


def _shown(row: dict[str, Any]) -> wire.ApiKey:
    shown = {name: row[name] for name in wire.ApiKey.model_fields}
    return wire.ApiKey.model_validate({**shown, "models": _models(row)})


def _models(row: Mapping[str, Any]) -> list[str] | None:
    return None if row["models"] is None else list(json.loads(row["models"]))
