"""Credit beside a plan, as pages show it: what is left of each grant, and what became of those that are over."""

from typing import Any, Literal

from gateway.web.parts import Parts
from infra.kit.errors import AlcoveError
from metering_proxy.wire import Grant

State = Literal["live", "spent", "expired", "revoked"]


async def grants_or_none(here: Parts, tenant: str) -> list[dict[str, Any]] | None:
    """*Grant* list of the templates in the order in which they are spent; None while the meter cannot be asked."""
    try:
        found = await here.meter.grants(tenant)
    except AlcoveError:
        return None
    now_at = here.clock.now_at()
    return [
        {
            "id": grant.id,
            "kind": grant.kind,
            "note": grant.note,
            "amount_nanos": grant.amount_nanos,
            "left_nanos": _left_nanos(grant, now_at),
            "created_at": grant.created_at,
            "expires_at": grant.expires_at,
            "state": state(grant, now_at),
        }
        for grant in found
    ]


def _left_nanos(grant: Grant, now_at: int) -> int:
    """What can still be spent: of a grant that was taken back or is over, nothing."""
    over = state(grant, now_at) in ("revoked", "expired")
    return 0 if over else grant.amount_nanos - grant.spent_nanos


def state(grant: Grant, now_at: int) -> State:
    """What has become of a grant."""
    if grant.revoked_at is not None:
        return "revoked"
    if grant.expires_at is not None and grant.expires_at <= now_at:
        return "expired"
    return "spent" if grant.spent_nanos >= grant.amount_nanos else "live"
