"""Sign-in sessions: opaque secrets in a cookie, their SHA-256 in the database, limits in time."""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, and_, delete, or_, select, update
from sqlalchemy.engine import RowMapping

from gateway.limits import Limits
from gateway.models import account, session, tenant
from gateway.scope import Scope
from infra.kit import ids
from infra.kit.db import Reading, Transaction


@dataclass(frozen=True, slots=True)
class Identity:
    """Who sends this request, as its session says."""

    session_id: str
    account_id: str
    email: str
    is_admin: bool
    tenant: str
    plan: str
    csrf: str
    last_seen_at: int

    @property
    def scope(self) -> Scope:
        """The wall around what this person may touch."""
        return Scope(self.tenant, self.account_id)


@dataclass(frozen=True, slots=True)
class Visitor:
    """Where a request comes from, for the list of sessions and for throttling."""

    ip: str
    user_agent: str


def csrf_token(secret: str) -> str:
    """The token that belongs to a cookie's secret; it does not tell the secret."""
    return hmac.new(secret.encode(), b"alcove csrf", hashlib.sha256).hexdigest()


async def start(tx: Transaction, account_id: str, visitor: Visitor) -> str:
    """Begins a session; answers the secret for the cookie, which is not kept."""
    secret, now_at = ids.secret(), await tx.now_at()
    await tx.execute(
        session.insert().values(
            id=ids.ulid(now_at),
            account_id=account_id,
            secret_hash=ids.digest(secret),
            user_agent=visitor.user_agent[:300],
            ip=visitor.ip[:64],
            created_at=now_at,
            last_seen_at=now_at,
        )
    )
    return secret


async def find(reading: Reading, secret: str, limits: Limits) -> Identity | None:
    """Whose session the secret opens: None when it ended, idled out, or its tenant is not active."""
    row = await reading.row(_alive().where(session.c.secret_hash == ids.digest(secret)))
    if row is None or not _within(row, await reading.now_at(), limits):
        return None
    return Identity(
        session_id=row["id"],
        account_id=row["account_id"],
        email=row["email"],
        is_admin=row["is_admin"],
        tenant=row["tenant"],
        plan=row["plan"],
        csrf=csrf_token(secret),
        last_seen_at=row["last_seen_at"],
    )


async def still_alive(
    reading: Reading, session_ids: Sequence[str], limits: Limits
) -> dict[str, bool]:
    """For those of `session_ids` that exist and are within their time: whether the tenant is active."""
    rows = await reading.rows(
        select(*session.c["id", "created_at", "last_seen_at"], account.c.is_admin, tenant.c.status)
        .join(account, account.c.id == session.c.account_id)
        .join(tenant, tenant.c.account_id == account.c.id)
        .where(session.c.id.in_(session_ids))
    )
    now_at = await reading.now_at()
    return {row["id"]: row["status"] == "active" for row in rows if _within(row, now_at, limits)}


async def touch(tx: Transaction, identity: Identity) -> None:
    """Notes that the person is there: the session's idle time and the tenant's last-seen begin anew."""
    now_at = await tx.now_at()
    await tx.execute(
        update(session).where(session.c.id == identity.session_id).values(last_seen_at=now_at)
    )
    await tx.execute(
        update(tenant).where(tenant.c.id == identity.tenant).values(last_seen_at=now_at)
    )


async def listing(reading: Reading, scope: Scope) -> Sequence[RowMapping]:
    """The account's sessions, last seen first."""
    return await reading.rows(
        select(*session.c["id", "user_agent", "created_at", "last_seen_at"])
        .where(scope.of(session))
        .order_by(session.c.last_seen_at.desc(), session.c.id)
    )


async def end(tx: Transaction, scope: Scope, session_id: str) -> bool:
    """Ends one session of the account; whether there was one."""
    return bool(
        await tx.execute(delete(session).where(scope.of(session), session.c.id == session_id))
    )


async def end_all(tx: Transaction, scope: Scope, *, keep: str | None = None) -> list[str]:
    """Ends the account's sessions but `keep`; answers their ids."""
    others = and_(scope.of(session), session.c.id != keep) if keep else scope.of(session)
    rows = await tx.rows(select(session.c.id).where(others))
    await tx.execute(delete(session).where(others))
    return [row["id"] for row in rows]


async def forget_expired(tx: Transaction, now_at: int, limits: Limits) -> None:
    """Removes sessions that are past their idle or absolute time."""
    await tx.execute(
        delete(session).where(
            or_(
                session.c.last_seen_at < now_at - limits.session_idle_s * 1000,
                session.c.created_at < now_at - limits.session_absolute_s * 1000,
            )
        )
    )


def _alive() -> Select[*tuple[Any, ...]]:
    return (
        select(
            *session.c["id", "account_id", "created_at", "last_seen_at"],
            *account.c["email", "is_admin"],
            tenant.c.id.label("tenant"),
            tenant.c.plan,
        )
        .join(account, account.c.id == session.c.account_id)
        .join(tenant, tenant.c.account_id == account.c.id)
        .where(tenant.c.status == "active")
    )


def _within(row: RowMapping, now_at: int, limits: Limits) -> bool:
    longest_s = limits.admin_session_absolute_s if row["is_admin"] else limits.session_absolute_s
    idle_ms: int = now_at - row["last_seen_at"]
    age_ms: int = now_at - row["created_at"]
    return idle_ms < limits.session_idle_s * 1000 and age_ms < longest_s * 1000
