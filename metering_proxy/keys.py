"""Keys that open a tenant's door: those of instances, minted for one generation and dead with it, and those that
people hold (api_keys.py makes them). Kept as digests, in rows and in memory."""

import json
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import ColumnElement, delete, insert, or_, select, update

from infra.kit import ids
from infra.kit.clock import Clock
from infra.kit.db import Database, Reading
from infra.kit.errors import AlcoveError
from metering_proxy import audit, changes
from metering_proxy.models import api_key, instance_key
from metering_proxy.plans import matches

PREFIX = "alcove-"


@dataclass(frozen=True, slots=True)
class Key:
    """A live key. `holder`: a generation or a person's key, in words. `until_at`: when it ends by itself.

    `models`: patterns of canonical ids that it is for, in small letters; None: all that the plan offers.
    """

    tenant: str
    digest: str
    holder: str
    until_at: int | None = None
    models: tuple[str, ...] | None = None
    of_a_person: bool = False

    def offers(self, model: str) -> bool:
        """Whether it is for that model, by its canonical id."""
        if self.models is None:
            return True
        return any(matches(model, pattern) for pattern in self.models)

    def check(self, model: str) -> None:
        """Raises `forbidden` (reason `model_not_allowed`) where it is not for that model."""
        if not self.offers(model):
            raise AlcoveError(
                "forbidden", f"this key is not for {model}", reason="model_not_allowed"
            )


@dataclass(frozen=True, slots=True)
class InstanceKey:
    """Whose key it is, and where that generation's listener is bound."""

    tenant: str
    generation: int
    digest: str
    directory: str

    @property
    def opens(self) -> Key:
        """The key as the door knows it."""
        return Key(self.tenant, self.digest, f"generation {self.generation}")


class Keys:
    """Live keys, in rows and in memory."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db, self._clock = db, clock
        self._by_digest: dict[str, Key] = {}
        self._digests: defaultdict[str, set[str]] = defaultdict(set)
        self._used: dict[str, int] = {}
        self._in_turn = changes.InTurn(db)

    async def load(self) -> list[InstanceKey]:
        """Reads every live key anew and gives those of instances."""
        async with self._in_turn.read() as reading:
            instances, people = await _read(reading, None, self._clock.now_at())
            self._by_digest.clear()
            self._digests.clear()
            self._know([*[key.opens for key in instances], *people])
        return instances

    async def refresh(self, tenants: Collection[str]) -> dict[str, set[int]]:
        """Reads these tenants' keys anew: something has changed them. Gives the generations that live."""
        async with self._in_turn.read() as reading:
            instances, people = await _read(reading, tenants, self._clock.now_at())
            for tenant in tenants:
                for digest in self._digests.pop(tenant, set()):
                    self._by_digest.pop(digest, None)
            self._know([*[key.opens for key in instances], *people])
        return {
            tenant: {key.generation for key in instances if key.tenant == tenant}
            for tenant in tenants
        }

    def find(self, secret: str) -> Key | None:
        """The live key that `secret` is. Looked up by its digest, so no comparison leaks where it differs."""
        key = self._by_digest.get(ids.digest(secret))
        if key is None or (key.until_at is not None and key.until_at <= self._clock.now_at()):
            return None
        return key

    def used(self, key: Key) -> None:
        """A key has opened a door; of a person's it is told when, a little later."""
        if key.of_a_person:
            self._used[key.digest] = self._clock.now_at()

    async def tell_used(self) -> None:
        """Writes down when people's keys were used last here; a job does, and whoever ends the process."""
        used, self._used = self._used, {}
        if not used:
            return
        async with self._db.transaction() as tx:
            for digest, at in sorted(used.items()):  # in one order, whoever else tells of them
                before = or_(api_key.c.last_used_at.is_(None), api_key.c.last_used_at < at)
                mine = api_key.c.digest == digest
                await tx.execute(update(api_key).where(mine, before).values(last_used_at=at))

    async def mint(self, tenant: str, generation: int, directory: str) -> str:
        """A new key for that generation; the one before it is dead when this returns."""
        secret = ids.secret(PREFIX)
        async with self._db.transaction() as tx:
            await tx.alone(f"instance_key/{tenant}")
            await tx.execute(delete(instance_key).where(_is(tenant, generation)))
            await tx.execute(
                insert(instance_key).values(
                    tenant=tenant,
                    generation=generation,
                    digest=ids.digest(secret),
                    hint=secret[-4:],
                    directory=directory,
                    minted_at=self._clock.now_at(),
                )
            )
            await changes.note(tx, "key", tenant)
        await self.refresh([tenant])
        return secret

    async def delete(self, tenant: str, generation: int) -> None:
        """Ends a generation's key; no error where there is none."""
        async with self._db.transaction() as tx:
            await tx.execute(delete(instance_key).where(_is(tenant, generation)))
            await changes.note(tx, "key", tenant)
        await self.refresh([tenant])

    async def audit_stranger(self, tenant: str, key: Key) -> None:
        """Writes down that another tenant's key was shown at this tenant's door."""
        now_at, detail = self._clock.now_at(), f"{key.holder} of {key.tenant}"
        async with self._db.transaction() as tx:
            await audit.record(tx, at=now_at, tenant=tenant, what="stranger_key", detail=detail)

    def _know(self, keys: Collection[Key]) -> None:
        for key in keys:
            self._by_digest[key.digest] = key
            self._digests[key.tenant].add(key.digest)


async def _read(
    reading: Reading, tenants: Collection[str] | None, now_at: int
) -> tuple[list[InstanceKey], list[Key]]:
    minted = select(instance_key)
    held = select(api_key).where(
        api_key.c.revoked_at.is_(None),
        or_(api_key.c.expires_at.is_(None), api_key.c.expires_at > now_at),
    )
    if tenants is not None:
        minted = minted.where(instance_key.c.tenant.in_(tenants))
        held = held.where(api_key.c.tenant.in_(tenants))
    instances = [
        InstanceKey(row["tenant"], row["generation"], row["digest"], row["directory"])
        for row in await reading.rows(minted)
    ]
    people = [
        Key(
            tenant=row["tenant"],
            digest=row["digest"],
            holder=f"api key {row['id']}",
            until_at=row["expires_at"],
            models=None if row["models"] is None else _patterns(row["models"]),
            of_a_person=True,
        )
        for row in await reading.rows(held)
    ]
    return instances, people


def _patterns(models: str) -> tuple[str, ...]:
    return tuple(pattern.lower() for pattern in json.loads(models))


def _is(tenant: str, generation: int) -> ColumnElement[bool]:
    mine = instance_key.c.tenant == tenant
    return mine & (instance_key.c.generation == generation)
