"""One-time links that make an admin: 15 minutes, single use; a new one retires the last."""

from sqlalchemy import select

from gateway.accounts import one_time
from gateway.accounts.one_time import Link, State
from gateway.limits import Limits
from gateway.models import account, admin_link
from infra.kit.db import Reading, Transaction


async def there_is_an_admin(reading: Reading) -> bool:
    """Whether any account is an admin."""
    return await reading.value(select(account.c.id).where(account.c.is_admin).limit(1)) is not None


async def make(tx: Transaction, limits: Limits) -> Link:
    """A new link; those that were not used yet expire now."""
    await one_time.retire(tx, admin_link)
    return await one_time.make(tx, admin_link, limits.admin_link_s)


async def state(reading: Reading, token: str) -> tuple[State, int | None]:
    """What the link is good for, and until when."""
    found, row = await one_time.look(reading, admin_link, token)
    return found, row["expires_at"] if row else None


async def must_be_ready(reading: Reading, token: str) -> None:
    """Raises as `use`."""
    found, _ = await one_time.find(reading, admin_link, token)
    one_time.must_be_ready(found)


async def use(tx: Transaction, token: str) -> None:
    """Uses the link up, in the transaction of what it allows.

    Raises `not_found`; `conflict` with reason `used` or `expired`.
    """
    await one_time.use(tx, admin_link, token)
