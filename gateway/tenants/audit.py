"""The audit: who did what to whom, why, before and after. Append-only; secrets and message text never."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, or_, select
from sqlalchemy.engine import RowMapping

from gateway.models import audit
from infra.kit import ids, log
from infra.kit.db import Reading, Transaction
from infra.kit.errors import AlcoveError

LONGEST_REASON = 500
PAGE = 50


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: an account, or the house itself."""

    account_id: str | None
    name: str
    ip: str | None = None


async def write(
    tx: Transaction,
    actor: Actor,
    action: str,
    *,
    tenant: str | None = None,
    reason: str | None = None,
    before: str | None = None,
    after: str | None = None,
) -> None:
    """Adds a row in the transaction of the act itself, so that neither exists without the other."""
    now_at = await tx.now_at()
    await tx.execute(
        audit.insert().values(
            id=ids.ulid(now_at),
            at=now_at,
            actor_account=actor.account_id,
            actor=actor.name,
            tenant=tenant,
            action=action,
            reason=reason,
            before=before,
            after=after,
            ip=actor.ip,
            request_id=log.context().get("request_id"),
        )
    )


async def of_tenant(reading: Reading, tenant: str, limit: int = 50) -> Sequence[RowMapping]:
    """The newest rows about a tenant. For admins."""
    return await reading.rows(
        select(*audit.c["at", "actor", "action", "reason", "before", "after"])
        .where(audit.c.tenant == tenant)
        .order_by(audit.c.at.desc(), audit.c.id.desc())
        .limit(limit)
    )


async def listed(
    reading: Reading, *, who: str, whom: str | None, action: str | None, before: str | None
) -> Sequence[RowMapping]:
    """The newest rows, one more than a `PAGE` where there are more. For admins.

    `who`: part of the name of who acted, `whom`: a tenant; a row that fits either is found. `before`: a row's id.
    """
    wanted = select(audit).order_by(audit.c.id.desc()).limit(PAGE + 1)
    if who:
        acted = func.lower(audit.c.actor).contains(who.lower(), autoescape=True)
        wanted = wanted.where(acted if whom is None else or_(acted, audit.c.tenant == whom))
    if action is not None:
        wanted = wanted.where(audit.c.action == action)
    if before is not None:
        wanted = wanted.where(audit.c.id < before)
    return await reading.rows(wanted)


def reason_given(reason: str) -> str:
    """The reason without blanks around it. Raises `invalid` (field `reason`) where there is none."""
    given = " ".join(reason.split())
    if not given:
        raise AlcoveError("invalid", "Say why; it is kept with the change.", field="reason")
    if len(given) > LONGEST_REASON:
        raise AlcoveError("invalid", f"At most {LONGEST_REASON} characters.", field="reason")
    return given
