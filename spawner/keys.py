"""Instance keys: minted by the meter for one generation, noted before, taken back once it is proven gone."""

import logging

from sqlalchemy import ColumnElement, and_, delete, insert, select

from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from metering_proxy import wire as meter
from metering_proxy.client import MeterClient
from spawner.models import instance_key

log = logging.getLogger(__name__)


class Keys:
    """The keys that the meter minted for us."""

    def __init__(self, db: Database, client: MeterClient) -> None:
        self._db, self._client = db, client

    async def mint(self, tenant: str, generation: int, directory: str) -> meter.InstanceKey:
        """A new key, and the tenant's listener bound in `directory`. Errors as the meter's."""
        async with self._db.transaction() as tx:
            query = select(instance_key).where(_is(tenant, generation))
            if await tx.row(query) is None:
                await tx.execute(
                    insert(instance_key).values(
                        tenant=tenant, generation=generation, asked_at=await tx.now_at()
                    )
                )
        return await self._client.mint_key(tenant, generation, directory)

    async def release(self, tenant: str, generation: int) -> None:
        """Takes back the key of a generation that is proven gone. Where the meter cannot be asked now,
        the key stays noted and the reconciler asks again."""
        try:
            await self._client.delete_key(tenant, generation)
        except AlcoveError as error:
            if error.code != "not_found":
                log.warning(
                    "key not taken back yet",
                    extra={"tenant": tenant, "generation": generation, "code": error.code},
                )
                return
        async with self._db.transaction() as tx:
            await tx.execute(delete(instance_key).where(_is(tenant, generation)))

    async def noted(self) -> list[tuple[str, int]]:
        """Every (tenant, generation) whose key has not been taken back."""
        async with self._db.read() as reading:
            return [
                (row["tenant"], row["generation"])
                for row in await reading.rows(select(instance_key))
            ]


def _is(tenant: str, generation: int) -> ColumnElement[bool]:
    return and_(instance_key.c.tenant == tenant, instance_key.c.generation == generation)
