"""Credit that admins give: a grant at the meter, audited here with its reason.

The audit row comes first: a gift that nobody wrote down is worse than a row about one that failed. The grant's
id is made with the form, so that sending it twice gives once.
"""

from gateway import words
from gateway.stream.hub import Hub
from gateway.tenants import audit, store
from gateway.tenants.audit import Actor
from infra.kit import money
from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from metering_proxy.client import MeterClient
from metering_proxy.wire import GrantRequest


class Credit:
    """Giving, and taking back what is left."""

    def __init__(self, db: Database, meter: MeterClient, hub: Hub) -> None:
        self._db, self._meter, self._hub = db, meter, hub

    async def give(
        self, actor: Actor, tenant: str, grant: str, asked: GrantRequest, reason: str
    ) -> None:
        """Gives a tenant money beside its plan. Raises `invalid`, `not_found`, `conflict`, `unavailable`."""
        why = audit.reason_given(reason)
        until = f" until {words.long_moment(asked.expires_at)}" if asked.expires_at else ""
        what = f"{money.format_usd(asked.amount_nanos)}{until}"
        await self._write(actor, "credit.given", tenant, why, after=what)
        try:
            await self._meter.put_grant(tenant, grant, asked)
        except AlcoveError as error:
            await self._write(actor, "credit.not_given", tenant, error.message, before=what)
            if error.reason == "grant":
                problem = "This was given before, on other terms. Load the page again to give more."
                raise AlcoveError("conflict", problem) from error
            raise
        self._hub.tell(tenant, "quota")

    async def revoke(self, actor: Actor, tenant: str, grant: str, reason: str) -> None:
        """Ends a grant; what is left of it is gone. Raises `invalid`, `not_found`, `unavailable`."""
        why = audit.reason_given(reason)
        found = next((g for g in await self._meter.grants(tenant) if g.id == grant), None)
        if found is None:
            raise AlcoveError("not_found", "There is no such credit.")
        left = money.format_usd(found.amount_nanos - found.spent_nanos - found.held_nanos)
        await self._write(actor, "credit.revoked", tenant, why, before=f"{left} left")
        await self._meter.revoke_grant(tenant, grant)
        self._hub.tell(tenant, "quota")

    async def _write(
        self,
        actor: Actor,
        action: str,
        tenant: str,
        reason: str,
        *,
        before: str | None = None,
        after: str | None = None,
    ) -> None:
        async with self._db.transaction() as tx:
            await store.get(tx, tenant)
            await audit.write(
                tx, actor, action, tenant=tenant, reason=reason, before=before, after=after
            )
