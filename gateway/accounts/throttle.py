"""Token buckets in the database, so that several gateways count together and a restart forgets nothing."""

import hashlib
import ipaddress
from math import ceil

from sqlalchemy import delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from gateway.limits import Bucket
from gateway.models import login_throttle as table
from infra.kit.db import Transaction
from infra.kit.errors import AlcoveError

_SET_BACK_MS = 60_000  # a clock that is set back by more was wrong; by less, it is being set right


def ip_key(door: str, ip: str) -> str:
    """The bucket of an address; of an IPv6 one, that of its /64, which one person owns whole."""
    try:
        parsed = ipaddress.ip_address(ip)
    except ValueError:
        return f"{door}:ip:unknown"
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped:
            return f"{door}:ip:{parsed.ipv4_mapped}"
        return f"{door}:ip:{ipaddress.ip_network((parsed, 64), strict=False)}"
    return f"{door}:ip:{parsed}"


def account_key(door: str, email_key: str) -> str:
    """The bucket of an address that somebody typed, whether or not it has an account."""
    return f"{door}:account:{hashlib.sha256(email_key.encode()).hexdigest()[:40]}"


async def take(tx: Transaction, key: str, bucket: Bucket) -> None:
    """Takes one attempt. Raises `rate_limited` with `retry_after_s` when none is left."""
    now_at = await tx.now_at()
    full = bucket.capacity * 1000
    fresh = {"key": key, "allowance_milli": full, "updated_at": now_at}
    dialect = postgresql if tx.is_postgres else sqlite
    await tx.execute(dialect.insert(table).values(fresh).on_conflict_do_nothing())
    row = await tx.row(select(table).where(table.c.key == key).with_for_update())
    assert row is not None
    passed_ms = now_at - row["updated_at"]
    if passed_ms < -_SET_BACK_MS:  # else who used it up would wait until the clock is where it was
        passed_ms = round(full * bucket.refill_s)
    allowance = min(full, row["allowance_milli"] + max(0, int(passed_ms / bucket.refill_s)))
    if allowance < 1000:
        wait_s = ceil((1000 - allowance) * bucket.refill_s / 1000)
        raise AlcoveError(
            "rate_limited",
            "Too many attempts. Wait a moment and try again.",
            reason="throttled",
            retry_after_s=max(1, wait_s),
        )
    await tx.execute(
        update(table)
        .where(table.c.key == key)
        .values(allowance_milli=allowance - 1000, updated_at=now_at)
    )


async def give_back(tx: Transaction, key: str, bucket: Bucket) -> None:
    """Returns the attempt that succeeded: only failures count."""
    full = bucket.capacity * 1000
    row = await tx.row(select(table).where(table.c.key == key).with_for_update())
    if row is not None:
        allowance = min(full, row["allowance_milli"] + 1000)
        await tx.execute(update(table).where(table.c.key == key).values(allowance_milli=allowance))


async def forget_old(tx: Transaction, before_at: int) -> None:
    """Removes buckets that nobody has touched since `before_at`; they would be full again."""
    await tx.execute(delete(table).where(table.c.updated_at < before_at))
