"""One-time links: stored as hashes, good until a moment, used up once. What they are good for is their callers'.

Every table of links has `token_hash`, `created_at`, `expires_at` and `used_at`; what else it has, `make` is given.
"""

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import ColumnElement, Table, select, update
from sqlalchemy.engine import RowMapping

from infra.kit import ids
from infra.kit.db import Reading, Transaction
from infra.kit.errors import AlcoveError

State = Literal["ready", "used", "expired", "unknown"]


@dataclass(frozen=True, slots=True)
class Link:
    """A link as it is handed out: the token is not kept."""

    token: str
    expires_at: int


async def make(tx: Transaction, table: Table, good_s: int, **values: str) -> Link:
    """A new link, good for `good_s`."""
    now_at = await tx.now_at()
    token, expires_at = ids.secret(), now_at + good_s * 1000
    await tx.execute(
        table.insert().values(
            token_hash=ids.digest(token), created_at=now_at, expires_at=expires_at, **values
        )
    )
    return Link(token, expires_at)


async def retire(tx: Transaction, table: Table, *which: ColumnElement[bool]) -> None:
    """Those of `which` that were not used yet expire now."""
    now_at = await tx.now_at()
    await tx.execute(
        update(table)
        .where(table.c.used_at.is_(None), table.c.expires_at > now_at, *which)
        .values(expires_at=now_at)
    )


async def look(reading: Reading, table: Table, token: str) -> tuple[State, RowMapping | None]:
    """What the link is good for, and its row; `unknown` for one that never was, a part of one included."""
    row = await reading.row(select(table).where(table.c.token_hash == ids.digest(token)))
    if row is None:
        return "unknown", None
    if row["used_at"] is not None:
        return "used", row
    return ("expired" if row["expires_at"] <= await reading.now_at() else "ready"), row


async def find(reading: Reading, table: Table, token: str) -> tuple[State, RowMapping]:
    """As `look`. Raises `not_found` for a link that never was."""
    state, row = await look(reading, table, token)
    if row is None:
        raise AlcoveError("not_found", "There is no such link.")
    return state, row


def must_be_ready(found: State) -> None:
    """Raises `conflict` with reason `used` or `expired`."""
    if found != "ready":
        raise AlcoveError("conflict", f"This link was {found}.", reason=found)


async def use(tx: Transaction, table: Table, token: str) -> RowMapping:
    """Uses the link up, in the transaction of what it allows; answers its row.

    Raises `not_found`; `conflict` with reason `used` or `expired`.
    """
    found, row = await find(tx, table, token)
    must_be_ready(found)
    unused = table.c.used_at.is_(None)
    mine = table.c.token_hash == row["token_hash"]
    if not await tx.execute(update(table).where(mine, unused).values(used_at=await tx.now_at())):
        must_be_ready("used")
    return row
