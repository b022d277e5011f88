"""The rotation of the sealing key: what was sealed with an older one is sealed anew with the current one.

Both keys are given; afterwards the old one is needed no more. Safe to repeat, and while the meter runs.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Table, select, update

from infra.kit.db import Database
from infra.kit.seal import Sealer
from metering_proxy import own_keys
from metering_proxy.egress import connections
from metering_proxy.egress.tables import token_connection
from metering_proxy.models import own_key, provider
from metering_proxy.providers import providers


async def reseal(db: Database, sealer: Sealer) -> int:
    """How many keys were sealed anew. Raises `internal` where a key was sealed with none of those given."""
    places: list[tuple[Table, str, Callable[[Any], str]]] = [
        (provider, "sealed_key", lambda row: providers.context(row["id"])),
        (own_key, "sealed_key", lambda row: own_keys.context(row["tenant"], row["provider"])),
        (
            token_connection,
            "sealed_token",
            lambda row: connections.context(row["tenant"], row["id"]),
        ),
    ]
    done = 0
    async with db.transaction() as tx:
        for table, name, context in places:
            for row in await tx.rows(select(table).where(table.c[name].is_not(None))):
                if sealer.is_current(row[name]):
                    continue
                text = sealer.open(row[name], context(row))
                mine = [column == row[column.name] for column in table.primary_key]
                sealed = sealer.seal(text, context(row))
                await tx.execute(update(table).where(*mine).values({name: sealed}))
                done += 1
    return done
