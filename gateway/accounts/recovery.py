"""The way back for who has forgotten their password: a one-time link that an admin makes, or the command line.

No mail is sent: whoever makes the link hands it over. It changes the password of one account and nothing else; a
newer link and a changed password retire it.
"""

import logging
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, select, update
from sqlalchemy.engine import RowMapping

from gateway.accounts import addresses, doors, one_time, passwords, sessions, throttle
from gateway.accounts.doors import Entered
from gateway.accounts.one_time import Link, State
from gateway.accounts.passwords import Passwords
from gateway.accounts.sessions import Visitor
from gateway.limits import Limits
from gateway.models import account, password_link, tenant
from gateway.scope import Scope
from gateway.tenants import audit
from gateway.tenants.audit import Actor
from infra.kit.db import Database, Reading, Transaction
from infra.kit.errors import AlcoveError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Offer:
    """What a link that was opened is good for; nothing else is known of one that never was."""

    state: State
    email: str | None = None
    expires_at: int | None = None


async def make(tx: Transaction, actor: Actor, email: str, reason: str, limits: Limits) -> Link:
    """A link for a new password of that address's account, audited; the ones before it expire.

    Raises `not_found` where the address has no account.
    """
    owner = await tx.row(_owners().where(account.c.email_key == addresses.key(email)))
    if owner is None:
        raise AlcoveError("not_found", f"Nobody signed up as {email}.", reason="no_account")
    return await _make(tx, actor, owner, reason, limits)


class Recovery:
    """Making a link for a person, opening it, using it."""

    def __init__(self, db: Database, keep: Passwords, limits: Limits) -> None:
        self._db, self._passwords, self._limits = db, keep, limits

    async def offer(self, actor: Actor, tenant_id: str, reason: str) -> Link:
        """A link for the person that a tenant belongs to, audited; the ones before it expire.

        Raises `not_found`, `invalid` (field `reason`).
        """
        why = audit.reason_given(reason)
        async with self._db.transaction() as tx:
            owner = await tx.row(_owners().where(tenant.c.id == tenant_id))
            if owner is None:
                raise AlcoveError("not_found", "There is no such tenant.")
            return await _make(tx, actor, owner, why, self._limits)

    async def look(self, token: str) -> Offer:
        """What the link is good for."""
        async with self._db.read() as reading:
            found, row = await one_time.look(reading, password_link, token)
            if row is None:
                return Offer(found)
            owner = await _owner(reading, row["account_id"])
        return Offer(found, owner["email"], row["expires_at"])

    async def redeem(
        self, token: str, password: str, visitor: Visitor
    ) -> tuple[Entered, list[str]]:
        """Sets the password and signs in; answers also the ids of the sessions that it ended, all of them.

        Raises `not_found` and `conflict` (reason `used`, `expired`) for the link, `invalid` (field
        `password`), `forbidden` (reason `suspended`), `rate_limited`; the link stays good then.
        """
        async with self._db.transaction() as tx:
            await throttle.take(tx, throttle.ip_key("setup", visitor.ip), self._limits.setup_ip)
            found, row = await one_time.find(tx, password_link, token)
            one_time.must_be_ready(found)
            owner = await _owner(tx, row["account_id"])
            await doors.must_be_active(tx, owner["account_id"])
        passwords.check(password, owner["email"])
        hashed = await self._passwords.hash(password)
        async with self._db.transaction() as tx:
            await one_time.use(tx, password_link, token)
            # Once more: it may have been suspended while the password was hashed.
            await doors.must_be_active(tx, owner["account_id"])
            await tx.execute(
                update(account)
                .where(account.c.id == owner["account_id"])
                .values(password_hash=hashed)
            )
            ended = await sessions.end_all(tx, Scope(owner["tenant"], owner["account_id"]))
            actor = Actor(owner["account_id"], owner["email"], visitor.ip)
            await audit.write(tx, actor, "password.set_by_link", tenant=owner["tenant"])
            secret = await sessions.start(tx, owner["account_id"], visitor)
        log.info("auth.password_set_by_link", extra={"account": owner["account_id"]})
        return Entered(secret, owner["is_admin"]), ended


async def _make(
    tx: Transaction, actor: Actor, owner: RowMapping, reason: str, limits: Limits
) -> Link:
    of_the_account = password_link.c.account_id == owner["account_id"]
    await one_time.retire(tx, password_link, of_the_account)
    await audit.write(
        tx, actor, "password_link.made", tenant=owner["tenant"], reason=reason, after=owner["email"]
    )
    return await one_time.make(
        tx, password_link, limits.password_link_s, account_id=owner["account_id"]
    )


async def _owner(reading: Reading, account_id: str) -> RowMapping:
    row = await reading.row(_owners().where(account.c.id == account_id))
    assert row is not None, "a link's account and its tenant are made together and stay"
    return row


def _owners() -> Select[*tuple[Any, ...]]:
    return select(
        account.c.id.label("account_id"),
        *account.c["email", "is_admin"],
        tenant.c.id.label("tenant"),
    ).join(tenant, tenant.c.account_id == account.c.id)
