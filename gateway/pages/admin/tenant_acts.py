"""What an admin does to a tenant. Each act needs a reason and is audited; its forms are on the tenant's page."""

from collections.abc import Awaitable
from datetime import date, timedelta

from fastapi import APIRouter, Depends, Request, Response

from gateway import words
from gateway.pages.admin.tenant import show
from gateway.pages.form_errors import errors_of
from gateway.pages.render import see_other, zone
from gateway.web.identity import Admin, actor, admin, fields, written_by_our_page
from gateway.web.parts import parts
from infra.kit import ids, money
from infra.kit.errors import AlcoveError
from metering_proxy.wire import GrantKind, GrantRequest

router = APIRouter(
    prefix="/admin/tenants/{tenant}", dependencies=[Depends(admin), Depends(written_by_our_page)]
)
_MOST_USD = 1_000_000


@router.post("/plan")
async def change_plan(request: Request, person: Admin, tenant: str) -> Response:
    """Puts the tenant on another plan."""
    here, sent = parts(request), await fields(request)
    plan = sent.get("plan", "")

    async def act() -> list[str]:
        if plan not in {each.name for each in await here.quotas.plans()}:
            raise AlcoveError("invalid", "There is no such plan.", field="plan")
        return await here.administration.change_plan(
            actor(request, person), tenant, plan, sent.get("reason", "")
        )

    return await _acted(request, tenant, "plan", act(), "The plan is changed.")


@router.post("/quota")
async def change_quota(request: Request, person: Admin, tenant: str) -> Response:
    """Sets the month's charge by hand, or gives the plan's own back."""
    here, sent = parts(request), await fields(request)

    async def act() -> list[str]:
        typed = sent.get("limit_usd", "").strip()
        limit_nanos = _nanos(typed, "limit_usd") if typed else None
        return await here.administration.change_quota(
            actor(request, person), tenant, limit_nanos, sent.get("reason", "")
        )

    return await _acted(request, tenant, "quota", act(), "The quota is changed.")


@router.post("/suspension")
async def suspend(request: Request, person: Admin, tenant: str) -> Response:
    """Suspends the tenant."""
    here, sent = parts(request), await fields(request)
    act = here.administration.suspend(actor(request, person), tenant, sent.get("reason", ""))
    return await _acted(request, tenant, "suspension", act, "The tenant is suspended.")


@router.post("/resumption")
async def resume(request: Request, person: Admin, tenant: str) -> Response:
    """Lets the tenant in again."""
    here, sent = parts(request), await fields(request)
    act = here.administration.resume(actor(request, person), tenant, sent.get("reason", ""))
    return await _acted(request, tenant, "resumption", act, "The tenant can sign in again.")


@router.post("/egress")
async def change_egress(request: Request, person: Admin, tenant: str) -> Response:
    """Opens or closes the way out to public addresses."""
    here, sent = parts(request), await fields(request)
    allowed = sent.get("allowed") == "on"
    act = here.administration.change_egress(
        actor(request, person), tenant, allowed, sent.get("reason", "")
    )
    said = "Its tools may reach public addresses." if allowed else "The way out is closed."
    return await _acted(request, tenant, "egress", act, said)


@router.post("/grants")
async def give_credit(request: Request, person: Admin, tenant: str) -> Response:
    """Gives money beside the plan. The form brings the grant's id, and keeps it while it is shown with what
    was wrong: sent twice, also after an answer that did not come, it is given once.
    """
    here, sent = parts(request), await fields(request)

    async def act() -> list[str]:
        asked = _grant(sent, zone(request), here.clock.now_at())
        await here.credit.give(
            actor(request, person), tenant, sent["grant"], asked, sent.get("reason", "")
        )
        return []

    return await _acted(request, tenant, "grant", act(), "The credit is given.")


@router.post("/grants/{grant}/revocation")
async def revoke_credit(request: Request, person: Admin, tenant: str, grant: str) -> Response:
    """Takes back what is left of a grant."""
    here, sent = parts(request), await fields(request)

    async def act() -> list[str]:
        await here.credit.revoke(actor(request, person), tenant, grant, sent.get("reason", ""))
        return []

    return await _acted(request, tenant, f"revoke-{grant}", act(), "The credit is taken back.")


@router.post("/password-links")
async def make_password_link(request: Request, person: Admin, tenant: str) -> Response:
    """A link for a new password, on this one page and never again."""
    here, sent = parts(request), await fields(request)
    try:
        link = await here.recovery.offer(actor(request, person), tenant, sent.get("reason", ""))
    except AlcoveError as error:
        return await show(
            request, tenant, "password", errors_of(error, "reason"), sent, error.status
        )
    url = f"{here.settings.public_url}/password/{link.token}"
    return await show(request, tenant, link={"url": url, "expires_at": link.expires_at})


@router.post("/instance")
async def instance(request: Request, person: Admin, tenant: str) -> Response:
    """Wakes or stops the tenant's assistant."""
    here, action = parts(request), (await fields(request)).get("action")
    if action not in ("wake", "stop"):
        raise AlcoveError("invalid", "An assistant can be woken or stopped.")
    try:
        await here.administration.act_on_instance(
            actor(request, person), tenant, "wake" if action == "wake" else "stop"
        )
    except AlcoveError as error:
        if error.code not in ("unavailable", "timeout", "forbidden"):
            raise
        return see_other(request, f"/admin/tenants/{tenant}", error=error.message)
    said = "The assistant is being woken." if action == "wake" else "The assistant is stopping."
    return see_other(request, f"/admin/tenants/{tenant}", notice=said)


async def _acted(
    request: Request, tenant: str, form_name: str, act: Awaitable[list[str]], notice: str
) -> Response:
    """Back to the tenant's page with what happened, or its form again with what was wrong."""
    try:
        problems = await act
    except AlcoveError as error:
        errors, typed = errors_of(error, "reason"), await fields(request)
        return await show(request, tenant, form_name, errors, typed, error.status)
    parts(request).quotas.forget(tenant)  # the page that follows shows what was decided
    return see_other(
        request, f"/admin/tenants/{tenant}", notice=notice, error=" ".join(problems) or None
    )


def _grant(sent: dict[str, str], zone_name: str, now_at: int) -> GrantRequest:
    """What was asked for; its last day is whole, in the admin's zone. Raises `invalid` (field)."""
    if not ids.is_ulid(sent.get("grant", "")):
        raise AlcoveError("invalid", "Load the page again and give the credit there.")
    kind: GrantKind = "grace" if sent.get("kind") == "grace" else "credit"
    note, last = " ".join(sent.get("note", "").split())[:200], sent.get("last_day", "").strip()
    amount_nanos = _nanos(sent.get("amount_usd", "").strip(), "amount_usd")
    if not amount_nanos:
        raise AlcoveError("invalid", "Give more than nothing.", field="amount_usd")
    expires_at = _after(last, zone_name) if last else None
    if expires_at is not None and expires_at <= now_at:
        raise AlcoveError("invalid", "This day is over already.", field="last_day")
    if kind == "grace" and expires_at is None:
        raise AlcoveError("invalid", "A grace needs a last day.", field="last_day")
    if kind == "grace" and not note:
        raise AlcoveError("invalid", "A grace needs a name.", field="note")
    return GrantRequest(amount_nanos=amount_nanos, expires_at=expires_at, kind=kind, note=note)


def _after(last_day: str, zone_name: str) -> int:
    try:
        return words.midnight(date.fromisoformat(last_day) + timedelta(days=1), zone_name)
    except (ValueError, OverflowError):
        raise AlcoveError("invalid", "This is no day.", field="last_day") from None


def _nanos(typed: str, field: str) -> int:
    try:
        nanos = money.parse_usd(typed)
    except ValueError as error:
        raise AlcoveError("invalid", f"{error}.", field=field) from None
    if nanos > _MOST_USD * money.NANOS_PER_USD:
        raise AlcoveError("invalid", "At most a million dollars.", field=field)
    return nanos
