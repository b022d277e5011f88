"""One-time links that make an admin: 15 minutes, single use, stored hashed; a new one retires the last."""

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import select, update
from sqlalchemy.engine import RowMapping

from gateway.limits import Limits
from gateway.models import account, admin_link
from infra.kit import ids
from infra.kit.db import Reading, Transaction
from infra.kit.errors import AlcoveError

State = Literal["ready", "used", "expired"]


@dataclass(frozen=True, slots=True)
class Link:
    """A link as it is handed out: the token is not kept."""

    token: str
    expires_at: int


async def there_is_an_admin(reading: Reading) -> bool:
    """Whether any account is an admin."""
    return await reading.value(select(account.c.id).where(account.c.is_admin).limit(1)) is not None


async def make(tx: Transaction, limits: Limits) -> Link:
    """A new link; those that were not used yet expire now."""
    now_at = await tx.now_at()
    expires_at = now_at + limits.admin_link_s * 1000
    token = ids.secret()
    await tx.execute(
        update(admin_link)
        .where(admin_link.c.used_at.is_(None), admin_link.c.expires_at > now_at)
        .values(expires_at=now_at)
    )
    await tx.execute(
        admin_link.insert().values(
            token_hash=ids.digest(token), created_at=now_at, expires_at=expires_at
        )
    )
    return Link(token, expires_at)


async def state(reading: Reading, token: str) -> tuple[State, int]:
    """What the link is good for, and until when. Raises `not_found` for one that never was."""
    row = await _find(reading, token)
    return _state(row, await reading.now_at()), row["expires_at"]


async def use(tx: Transaction, token: str) -> None:
    """Uses the link up, in the transaction of what it allows.

    Raises `not_found`; `conflict` with reason `used` or `expired`.
    """
    row, now_at = await _find(tx, token), await tx.now_at()
    found = _state(row, now_at)
    used = found == "ready" and await tx.execute(
        update(admin_link)
        .where(admin_link.c.token_hash == row["token_hash"], admin_link.c.used_at.is_(None))
        .values(used_at=now_at)
    )
    if not used:
        reason = "expired" if found == "expired" else "used"
        raise AlcoveError("conflict", f"This link was {reason}.", reason=reason)


async def _find(reading: Reading, token: str) -> RowMapping:
    row = await reading.row(select(admin_link).where(admin_link.c.token_hash == ids.digest(token)))
    if row is None:
        raise AlcoveError("not_found", "There is no such link.")
    return row


def _state(row: RowMapping, now_at: int) -> State:
    if row["used_at"] is not None:
        return "used"
    return "expired" if row["expires_at"] <= now_at else "ready"
