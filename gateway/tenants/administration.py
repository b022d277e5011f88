"""What an admin does to a tenant: plan, quota, suspension, instance. Each with a reason, each audited."""

from collections.abc import Callable
from typing import Any, Literal

from gateway.accounts import sessions
from gateway.relay.instances import Instances
from gateway.scope import Scope
from gateway.stream.hub import Hub
from gateway.tenants import audit, store
from gateway.tenants.audit import Actor
from gateway.tenants.outbox import Outbox
from infra.kit import money
from infra.kit.db import Database, Transaction
from infra.kit.errors import AlcoveError

_ROOM_NAMES = {"meter": "The meter", "spawner": "The spawner"}


class Administration:
    """Admins' use cases. Answers the sentences that the admin should read about rooms that were away."""

    def __init__(self, db: Database, outbox: Outbox, instances: Instances, hub: Hub) -> None:
        self._db, self._outbox, self._instances, self._hub = db, outbox, instances, hub

    async def change_plan(self, actor: Actor, tenant: str, plan: str, reason: str) -> list[str]:
        """Puts the tenant on `plan`, which the caller has looked up at the meter.

        Raises `not_found`, `invalid` (field `reason`), `conflict`; so do the changes that follow.
        """
        await self._change(actor, tenant, reason, "plan.changed", "plan", plan, str)
        return await self._tell(tenant, "meter", "spawner")

    async def change_quota(
        self, actor: Actor, tenant: str, limit_nanos: int | None, reason: str
    ) -> list[str]:
        """Replaces the plan's monthly charge by `limit_nanos`; None gives the plan's own back."""
        column = "quota_charge_month_nanos"
        await self._change(
            actor, tenant, reason, "quota.changed", column, limit_nanos, _quota_words
        )
        problems = await self._tell(tenant, "meter")
        self._hub.tell(tenant, "quota")
        return problems + await self._tell(tenant, "spawner")

    async def change_egress(
        self, actor: Actor, tenant: str, allowed: bool, reason: str
    ) -> list[str]:
        """Lets the tenant's assistant reach public addresses, or no longer; the plan says how much of it."""
        await self._change(actor, tenant, reason, "egress.changed", "egress", allowed, _on_or_off)
        return await self._tell(tenant, "meter")

    async def suspend(self, actor: Actor, tenant: str, reason: str) -> list[str]:
        """The meter refuses, the spawner stops, then sessions and streams end, in this order.

        A room that is away does not hold up the next; the outbox goes on telling it.
        Raises `conflict` where an admin would lock out themselves.
        """
        why = audit.reason_given(reason)
        async with self._db.transaction() as tx:
            scope = await store.scope_of(tx, tenant)
            if scope.account_id == actor.account_id:
                raise AlcoveError("conflict", "You cannot suspend your own account.")
            before = await store.change(tx, tenant, status="suspended", suspended_reason=why)
            await self._write_status(tx, actor, tenant, why, before["status"], "suspended")
        problems = await self._tell(tenant, "meter", "spawner")
        await self._end_sessions(scope)
        return problems

    async def resume(self, actor: Actor, tenant: str, reason: str) -> list[str]:
        """Lets the tenant in again: sign-in works once this returns; nothing is started."""
        why = audit.reason_given(reason)
        async with self._db.transaction() as tx:
            before = await store.change(tx, tenant, status="active", suspended_reason=None)
            await self._write_status(tx, actor, tenant, why, before["status"], "active")
        return await self._tell(tenant, "meter", "spawner")

    async def act_on_instance(
        self, actor: Actor, tenant: str, action: Literal["wake", "stop"]
    ) -> None:
        """Wakes or stops the instance. Raises `not_found`, `unavailable`, `forbidden`."""
        async with self._db.transaction() as tx:
            await store.get(tx, tenant)
            await audit.write(tx, actor, f"instance.{action}", tenant=tenant)
        if action == "wake":
            await self._instances.wake(tenant, "admin")
        else:
            await self._instances.stop(tenant)

    async def _change(
        self,
        actor: Actor,
        tenant: str,
        reason: str,
        action: str,
        column: str,
        value: str | int | bool | None,
        said: Callable[[Any], str],
    ) -> None:
        """Changes one column of the tenant, audited with what it was before, as `said` puts it."""
        why = audit.reason_given(reason)
        async with self._db.transaction() as tx:
            before = await store.change(tx, tenant, **{column: value})
            await audit.write(
                tx,
                actor,
                action,
                tenant=tenant,
                reason=why,
                before=said(before[column]),
                after=said(value),
            )

    async def _end_sessions(self, scope: Scope) -> None:
        async with self._db.transaction() as tx:
            await sessions.end_all(tx, scope)
        self._hub.end_tenant(scope.tenant)

    async def _tell(self, tenant: str, *rooms: str) -> list[str]:
        problems = []
        for room in rooms:
            if not await self._outbox.push_now(tenant, room):
                name = _ROOM_NAMES[room]
                problems.append(f"{name} did not answer and will hear of this as soon as it does.")
        return problems

    @staticmethod
    async def _write_status(
        tx: Transaction, actor: Actor, tenant: str, why: str, before: str, after: str
    ) -> None:
        action = "tenant.suspended" if after == "suspended" else "tenant.resumed"
        await audit.write(tx, actor, action, tenant=tenant, reason=why, before=before, after=after)


def _quota_words(limit_nanos: int | None) -> str:
    return "the plan's own" if limit_nanos is None else money.format_usd(limit_nanos)


def _on_or_off(allowed: bool) -> str:
    return "on" if allowed else "off"
