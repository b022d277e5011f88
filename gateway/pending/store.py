"""Rows of `pending_message`. The text is sealed and bound to its tenant and client id."""

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import delete, select, update
from sqlalchemy.engine import RowMapping

from gateway.limits import Limits
from gateway.models import pending_message as table
from gateway.models import tenant
from gateway.scope import Scope
from infra.kit import log, tracing
from infra.kit.db import Reading, Transaction
from infra.kit.errors import AlcoveError
from infra.kit.seal import Sealer


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message that waits, its text opened. `request_id`, `traceparent`: of the request that brought it."""

    client_message_id: str
    conversation_id: str
    text: str
    created_at: int
    state: Literal["waiting", "failed"]
    error: dict[str, str] | None
    request_id: str | None
    traceparent: str | None

    def as_json(self) -> dict[str, Any]:
        """The shape of `GET /api/pending-messages`."""
        return {
            "client_message_id": self.client_message_id,
            "conversation_id": self.conversation_id,
            "text": self.text,
            "created_at": self.created_at,
            "state": self.state,
            "error": self.error,
        }


class PendingStore:
    """Keeps waiting messages. Every method stays inside one tenant's wall, but for the two lists of jobs."""

    def __init__(self, sealer: Sealer, limits: Limits) -> None:
        self._sealer, self._limits = sealer, limits

    async def add(
        self, tx: Transaction, scope: Scope, conversation_id: str, client_id: str, text: str
    ) -> None:
        """Keeps a message. The same again changes nothing, but that a failed one waits again.

        Raises `conflict` (same client id, other message), `rate_limited` (reason `pending_full`).
        """
        # The tenant's row is the lock: two browsers at once get one place each in the queue.
        await tx.row(select(tenant.c.id).where(tenant.c.id == scope.tenant).with_for_update())
        rows = await tx.rows(select(table).where(scope.of(table)))
        for row in rows:
            if row["client_message_id"] == client_id:
                known = self._open(scope, row)
                if (known.conversation_id, known.text) != (conversation_id, text):
                    raise AlcoveError(
                        "conflict", "This id belongs to another message.", reason="reused"
                    )
                await self.retry(tx, scope, client_id)
                return
        if len(rows) >= self._limits.pending_per_tenant:
            raise AlcoveError(
                "rate_limited",
                f"{len(rows)} messages are waiting already; send more once they are through.",
                reason="pending_full",
                retry_after_s=10,
            )
        await tx.execute(
            table.insert().values(
                tenant=scope.tenant,
                client_message_id=client_id,
                conversation_id=conversation_id,
                sealed_text=self._sealer.seal(text, _context(scope, client_id)),
                position=1 + max((row["position"] for row in rows), default=0),
                state="waiting",
                created_at=await tx.now_at(),
                request_id=log.context().get("request_id"),
                traceparent=tracing.headers().get("traceparent"),
            )
        )

    async def listing(self, reading: Reading, scope: Scope) -> list[Waiting]:
        """All, in the order in which they will be handed over."""
        rows = await reading.rows(select(table).where(scope.of(table)).order_by(table.c.position))
        return [self._open(scope, row) for row in rows]

    async def first(self, reading: Reading, scope: Scope) -> Waiting | None:
        """The one to hand over next; None when none waits."""
        row = await reading.row(
            select(table)
            .where(scope.of(table), table.c.state == "waiting")
            .order_by(table.c.position)
            .limit(1)
        )
        return self._open(scope, row) if row else None

    async def remove(self, tx: Transaction, scope: Scope, client_id: str) -> bool:
        """Deletes one: handed over, or discarded; whether there was one."""
        return bool(
            await tx.execute(
                delete(table).where(scope.of(table), table.c.client_message_id == client_id)
            )
        )

    async def fail(
        self, tx: Transaction, scope: Scope, error: AlcoveError, client_id: str | None = None
    ) -> None:
        """Marks one, or all that wait, as failed: the person may retry or discard."""
        which = [table.c.state == "waiting"]
        if client_id is not None:
            which.append(table.c.client_message_id == client_id)
        await tx.execute(
            update(table)
            .where(scope.of(table), *which)
            .values(
                state="failed",
                error_code=(error.reason or error.code)[:40],
                error_message=error.message[:300],
            )
        )

    async def retry(self, tx: Transaction, scope: Scope, client_id: str) -> bool:
        """Lets a failed one wait again; whether there was one."""
        return bool(
            await tx.execute(
                update(table)
                .where(scope.of(table), table.c.client_message_id == client_id)
                .values(state="waiting", error_code=None, error_message=None)
            )
        )

    async def tenants_waiting(self, reading: Reading) -> list[str]:
        """Tenants that have waiting messages. For the job that a restart begins with."""
        rows = await reading.rows(
            select(table.c.tenant).where(table.c.state == "waiting").distinct()
        )
        return [row["tenant"] for row in rows]

    async def forget_old(self, tx: Transaction) -> int:
        """Deletes what has waited for longer than is promised; how many."""
        oldest_at = await tx.now_at() - self._limits.pending_keep_s * 1000
        return await tx.execute(delete(table).where(table.c.created_at < oldest_at))

    def _open(self, scope: Scope, row: RowMapping) -> Waiting:
        client_id = row["client_message_id"]
        error = None
        if row["state"] == "failed":
            error = {"code": row["error_code"], "message": row["error_message"]}
        return Waiting(
            client_message_id=client_id,
            conversation_id=row["conversation_id"],
            text=self._sealer.open(row["sealed_text"], _context(scope, client_id)),
            created_at=row["created_at"],
            state=row["state"],
            error=error,
            request_id=row["request_id"],
            traceparent=row["traceparent"],
        )


def _context(scope: Scope, client_id: str) -> str:
    return f"pending_message:{scope.tenant}:{client_id}"
