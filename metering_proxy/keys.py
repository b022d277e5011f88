"""Keys of instances: minted for one generation of one tenant, kept as digests, dead with the generation."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, delete, insert, select

from infra.kit import ids
from infra.kit.clock import Clock
from infra.kit.db import Database
from metering_proxy.models import audit, instance_key

PREFIX = "alcove-"


@dataclass(frozen=True, slots=True)
class InstanceKey:
    """Whose key it is, and where that generation's listener is bound."""

    tenant: str
    generation: int
    digest: str
    directory: str


class Keys:
    """Live keys, in rows and in memory."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db, self._clock = db, clock
        self._by_digest: dict[str, InstanceKey] = {}

    async def load(self) -> list[InstanceKey]:
        """Reads every live key anew and gives them."""
        async with self._db.read() as reading:
            rows = await reading.rows(select(instance_key))
        keys = [
            InstanceKey(row["tenant"], row["generation"], row["digest"], row["directory"])
            for row in rows
        ]
        self._by_digest = {key.digest: key for key in keys}
        return keys

    def find(self, secret: str) -> InstanceKey | None:
        """The live key that `secret` is. Looked up by its digest, so no comparison leaks where it differs."""
        return self._by_digest.get(ids.digest(secret))

    async def mint(self, tenant: str, generation: int, directory: str) -> str:
        """A new key for that generation; the one before it is dead when this returns."""
        secret = ids.secret(PREFIX)
        key = InstanceKey(tenant, generation, ids.digest(secret), directory)
        async with self._db.transaction() as tx:
            await tx.execute(delete(instance_key).where(_is(tenant, generation)))
            await tx.execute(
                insert(instance_key).values(
                    tenant=tenant,
                    generation=generation,
                    digest=key.digest,
                    hint=secret[-4:],
                    directory=directory,
                    minted_at=self._clock.now_at(),
                )
            )
        self._forget(tenant, generation)
        self._by_digest[key.digest] = key
        return secret

    async def delete(self, tenant: str, generation: int) -> None:
        """Ends a generation's key; no error where there is none."""
        async with self._db.transaction() as tx:
            await tx.execute(delete(instance_key).where(_is(tenant, generation)))
        self._forget(tenant, generation)

    async def note(self, tenant: str, what: str, detail: str) -> None:
        """Writes an audit row about a tenant's listener."""
        async with self._db.transaction() as tx:
            await tx.execute(
                insert(audit).values(
                    id=ids.ulid(), at=self._clock.now_at(), tenant=tenant, what=what, detail=detail
                )
            )

    def _forget(self, tenant: str, generation: int) -> None:
        self._by_digest = {
            digest: key
            for digest, key in self._by_digest.items()
            if (key.tenant, key.generation) != (tenant, generation)
        }


def _is(tenant: str, generation: int) -> ColumnElement[bool]:
    mine = instance_key.c.tenant == tenant
    return mine & (instance_key.c.generation == generation)
