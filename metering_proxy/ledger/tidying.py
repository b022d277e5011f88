"""What may be forgotten: counters of minutes long gone, and reservations that ended. Entries are kept for ever."""

from infra.kit import ids
from infra.kit.db import Database, sql
from metering_proxy import changes

_MINUTES_KEPT_MS = 2 * 86_400_000
_RESERVATIONS_KEPT_MS = 35 * 86_400_000
_MINUTES = sql(
    "DELETE FROM account_window WHERE kind IN ('requests_minute', 'tokens_minute', 'charge_minute')"
    " AND held = 0 AND start_at < :before_at"
)
_RESERVATIONS = sql(
    "DELETE FROM reservation WHERE state IN ('settled', 'released', 'charged_estimate')"
    " AND request_id < :before AND lease_until_at < :before_at"
)


async def tidy(db: Database) -> None:
    """Deletes what no limit, report or recovery will ask for again."""
    async with db.transaction() as tx:
        now_at = await tx.now_at()
        await tx.execute(_MINUTES, {"before_at": now_at - _MINUTES_KEPT_MS})
        ended_at = now_at - _RESERVATIONS_KEPT_MS
        # A request's id begins with its moment: the oldest lie together, and are found without an index of theirs.
        oldest = {"before": ids.ulid(ended_at), "before_at": ended_at}
        await tx.execute(_RESERVATIONS, oldest)
        await changes.forget(tx)
