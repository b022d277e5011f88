"""The ways in: sign-up, sign-in, the setup link; and changing the password.

What the answers tell. Sign-in says the same, after the same work, for a wrong password and for an
address without an account. Sign-up cannot: who takes a new address is signed in at once, so a taken
one must be refused while no mail can be sent to it. It says no more than that, works as long as a
success does, and an address may ask only so often.
"""

import logging
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import IntegrityError

from gateway.accounts import addresses, admin_links, one_time, passwords, sessions, throttle
from gateway.accounts.passwords import Passwords
from gateway.accounts.sessions import Identity, Visitor
from gateway.limits import Limits
from gateway.models import account, password_link, tenant
from gateway.tenants import audit, store
from infra.kit import ids
from infra.kit.db import Database, Transaction
from infra.kit.errors import AlcoveError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entered:
    """A door that opened: the secret for the cookie."""

    secret: str
    is_admin: bool


class Doors:
    """The use cases of getting in. Each opens its own transactions; hashing happens between them."""

    def __init__(self, db: Database, keep: Passwords, limits: Limits, *, open_: bool) -> None:
        self._db, self._passwords, self._limits, self._open = db, keep, limits, open_

    @property
    def sign_up_is_open(self) -> bool:
        """Whether strangers may make an account."""
        return self._open

    async def sign_up(self, email: str, password: str, visitor: Visitor) -> Entered:
        """Account, tenant and session in one transaction; no other service is asked.

        Raises `invalid` (field), `conflict` (field `email`, the address is taken), `rate_limited`,
        `forbidden` (reason `sign_up_closed`).
        """
        if not self._open:
            raise AlcoveError("forbidden", "Sign-up is closed here.", reason="sign_up_closed")
        address = addresses.clean(email)
        passwords.check(password, address)
        async with self._db.transaction() as tx:
            await throttle.take(tx, throttle.ip_key("sign-up", visitor.ip), self._limits.sign_up_ip)
        hashed = await self._passwords.hash(password)
        try:
            async with self._db.transaction() as tx:
                account_id = await _create(tx, address, hashed, is_admin=False)
                secret = await sessions.start(tx, account_id, visitor)
        except IntegrityError:
            raise _taken() from None
        log.info("auth.sign_up", extra={"account": account_id})
        return Entered(secret, is_admin=False)

    async def sign_in(self, email: str, password: str, visitor: Visitor) -> Entered:
        """A new session for who knows the password.

        Raises `unauthorized` (reason `wrong_credentials`), `forbidden` (reason `suspended`, only
        after the right password), `rate_limited`.
        """
        row = await self._prove(email, password, visitor)
        async with self._db.transaction() as tx:
            await must_be_active(tx, row["id"])
            secret = await sessions.start(tx, row["id"], visitor)
        log.info("auth.sign_in", extra={"account": row["id"], "method": "password"})
        return Entered(secret, row["is_admin"])

    async def set_up(self, token: str, email: str, password: str, visitor: Visitor) -> Entered:
        """Uses a setup link: makes an admin's account, or an admin of who proves to own the account.

        Raises `not_found` and `conflict` (reason `used`, `expired`) for the link, `forbidden` (reason
        `suspended`) for an account that may not come in, else as sign-up. The link stays good then.
        """
        address = addresses.clean(email)
        async with self._db.transaction() as tx:
            await throttle.take(tx, throttle.ip_key("setup", visitor.ip), self._limits.setup_ip)
            await admin_links.must_be_ready(tx, token)
            taken = await tx.value(_by_key(address).with_only_columns(account.c.id))
        hashed = ""
        if taken:
            await self._prove(email, password, visitor)
        else:
            passwords.check(password, address)
            hashed = await self._passwords.hash(password)
        try:
            async with self._db.transaction() as tx:
                await admin_links.use(tx, token)
                account_id: str = taken or await _create(tx, address, hashed, is_admin=True)
                await must_be_active(tx, account_id)
                await tx.execute(
                    update(account).where(account.c.id == account_id).values(is_admin=True)
                )
                actor = audit.Actor(account_id, address, visitor.ip)
                await audit.write(tx, actor, "admin.made", reason="setup link", after=address)
                secret = await sessions.start(tx, account_id, visitor)
        except IntegrityError:  # somebody signed up with the address while the password was hashed
            raise _taken() from None
        log.info("auth.set_up", extra={"account": account_id})
        return Entered(secret, is_admin=True)

    async def change_password(
        self, identity: Identity, current: str, new: str, visitor: Visitor
    ) -> list[str]:
        """Changes the password, ends the other sessions and retires links; answers the sessions' ids.

        Raises `invalid` (field `current` or `password`), `rate_limited`.
        """
        try:
            await self._prove(identity.email, current, visitor)
        except AlcoveError as error:
            if error.code != "unauthorized":
                raise
            raise AlcoveError(
                "invalid", "This is not your current password.", field="current"
            ) from None
        passwords.check(new, identity.email)
        hashed = await self._passwords.hash(new)
        async with self._db.transaction() as tx:
            await tx.execute(
                update(account)
                .where(account.c.id == identity.account_id)
                .values(password_hash=hashed)
            )
            ended = await sessions.end_all(tx, identity.scope, keep=identity.session_id)
            await one_time.retire(
                tx, password_link, password_link.c.account_id == identity.account_id
            )
        log.info("auth.password_changed", extra={"account": identity.account_id})
        return ended

    async def _prove(self, email: str, password: str, visitor: Visitor) -> RowMapping:
        """The account whose password this is. Failures count against the address and the account."""
        key = addresses.key(email)[:300]
        buckets = (
            (throttle.ip_key("sign-in", visitor.ip), self._limits.sign_in_ip),
            (throttle.account_key("sign-in", key), self._limits.sign_in_account),
        )
        async with self._db.transaction() as tx:
            for name, bucket in buckets:
                await throttle.take(tx, name, bucket)
            row = await tx.row(_by_key(email))
        good = await self._passwords.verify(row["password_hash"] if row else None, password)
        if row is None or not good:
            log.warning("auth.sign_in_failed", extra={"account": row["id"] if row else None})
            raise AlcoveError(
                "unauthorized",
                "The address or the password is not right.",
                reason="wrong_credentials",
            )
        fresh = (
            await self._passwords.hash(password)
            if self._passwords.is_old(row["password_hash"])
            else None
        )
        async with self._db.transaction() as tx:
            for name, bucket in buckets:
                await throttle.give_back(tx, name, bucket)
            if fresh:
                await tx.execute(
                    update(account).where(account.c.id == row["id"]).values(password_hash=fresh)
                )
        return row


def _taken() -> AlcoveError:
    return AlcoveError(
        "conflict",
        "This address cannot be used for a new account. If it is yours, sign in instead.",
        field="email",
        reason="address_taken",
    )


async def must_be_active(tx: Transaction, account_id: str) -> None:
    """Raises `forbidden` (reason `suspended`) for an account that may not come in."""
    status = await tx.value(select(tenant.c.status).where(tenant.c.account_id == account_id))
    if status != "active":
        raise AlcoveError("forbidden", "This account is suspended.", reason="suspended")


def _by_key(email: str) -> Select[*tuple[Any, ...]]:
    return select(account).where(account.c.email_key == addresses.key(email))


async def _create(tx: Transaction, address: str, hashed: str, *, is_admin: bool) -> str:
    now_at = await tx.now_at()
    account_id = ids.ulid(now_at)
    await tx.execute(
        account.insert().values(
            id=account_id,
            email=address,
            email_key=addresses.key(address),
            password_hash=hashed,
            is_admin=is_admin,
            created_at=now_at,
        )
    )
    await store.create(tx, account_id)
    return account_id
