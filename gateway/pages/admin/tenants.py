"""Tenants: the list, one tenant, and what an admin does to it. Each act needs a reason and is audited."""

from collections.abc import Awaitable
from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from gateway.pages import report
from gateway.pages.render import page, see_other, wants_part, zone
from gateway.pages.usage import month_rows, quota_or_none
from gateway.tenants import audit, store
from gateway.tenants.directory import Query
from gateway.web.identity import Admin, actor, admin, form, written_by_our_page
from gateway.web.parts import Parts, parts
from infra.kit import ids, money
from infra.kit.errors import AlcoveError
from metering_proxy.wire import Plan

# What the audit calls them, and what an admin reads.
_ACTS = {
    "plan.changed": "Plan changed",
    "quota.changed": "Quota changed",
    "tenant.suspended": "Suspended",
    "tenant.resumed": "Resumed",
    "instance.stop": "Put to sleep",
    "instance.wake": "Woken",
}
router = APIRouter(prefix="/admin", dependencies=[Depends(admin), Depends(written_by_our_page)])


@router.get("")
async def landing(request: Request) -> Response:
    """To the tenants."""
    return see_other(request, "/admin/tenants")


@router.get("/tenants")
async def listing(request: Request) -> Response:
    """The table; htmx takes the partial."""
    here = parts(request)
    query = Query.parse(dict(request.query_params), zone(request))
    found = await here.directory.listing(query)
    context: dict[str, Any] = {
        "rows": found.rows,
        "total": found.total,
        "totals": found.totals,
        "query": {
            name: getattr(query, name)
            for name in ("q", "plan", "status", "state", "sort", "order", "page", "size")
        },
        "pages": max(1, -(-found.total // query.size)),
        "plans": [plan.name for plan in await _plans(here)],
        "zone": query.zone,
        "problems": found.problems,
    }
    name = "admin/_tenants.html" if wants_part(request) else "admin/tenants.html"
    return await page(request, name, context)


@router.get("/tenants/{tenant}")
async def show(request: Request, tenant: str) -> Response:
    """One tenant."""
    return await _show(request, tenant)


@router.post("/tenants/{tenant}/plan")
async def change_plan(request: Request, person: Admin, tenant: str) -> Response:
    """Puts the tenant on another plan."""
    here, sent = parts(request), await _sent(request)
    plan = sent.get("plan", "")

    async def act() -> list[str]:
        if plan not in {each.name for each in await here.quotas.plans()}:
            raise AlcoveError("invalid", "There is no such plan.", field="plan")
        return await here.administration.change_plan(
            actor(request, person), tenant, plan, sent.get("reason", "")
        )

    return await _acted(request, tenant, "plan", act(), "The plan is changed.")


@router.post("/tenants/{tenant}/quota")
async def change_quota(request: Request, person: Admin, tenant: str) -> Response:
    """Sets the month's charge by hand, or gives the plan's own back."""
    here, sent = parts(request), await _sent(request)

    async def act() -> list[str]:
        typed = sent.get("limit_usd", "").strip()
        return await here.administration.change_quota(
            actor(request, person), tenant, _limit(typed), sent.get("reason", "")
        )

    return await _acted(request, tenant, "quota", act(), "The quota is changed.")


@router.post("/tenants/{tenant}/suspension")
async def suspend(request: Request, person: Admin, tenant: str) -> Response:
    """Suspends the tenant."""
    here, sent = parts(request), await _sent(request)
    act = here.administration.suspend(actor(request, person), tenant, sent.get("reason", ""))
    return await _acted(request, tenant, "suspension", act, "The tenant is suspended.")


@router.post("/tenants/{tenant}/resumption")
async def resume(request: Request, person: Admin, tenant: str) -> Response:
    """Lets the tenant in again."""
    here, sent = parts(request), await _sent(request)
    act = here.administration.resume(actor(request, person), tenant, sent.get("reason", ""))
    return await _acted(request, tenant, "resumption", act, "The tenant can sign in again.")


@router.post("/tenants/{tenant}/instance")
async def instance(request: Request, person: Admin, tenant: str) -> Response:
    """Wakes or stops the tenant's assistant."""
    here, action = parts(request), (await _sent(request)).get("action")
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
        if error.code not in ("invalid", "conflict", "unavailable", "timeout"):
            raise
        field = str(error.details.get("field", "reason"))
        values = {k: v for k, v in (await _sent(request)).items() if not k.startswith("x-")}
        return await _show(request, tenant, form_name, {field: error.message}, values, error.status)
    return see_other(
        request, f"/admin/tenants/{tenant}", notice=notice, error=" ".join(problems) or None
    )


async def _show(
    request: Request,
    tenant: str,
    form_name: str | None = None,
    errors: dict[str, str] | None = None,
    values: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    here, zone_name = parts(request), zone(request)
    if not ids.is_tenant_id(tenant):
        raise AlcoveError("not_found", "There is no such tenant.")
    async with here.db.read() as reading:
        row = await store.get(reading, tenant)
        entries = await audit.of_tenant(reading, tenant)
    rows, problem = await month_rows(here, tenant, zone_name)
    override = row["quota_charge_month_nanos"]
    context: dict[str, Any] = {
        "tenant": {
            "tenant": tenant,
            **{
                name: row[name]
                for name in (
                    "email",
                    "plan",
                    "status",
                    "is_admin",
                    "created_at",
                    "last_seen_at",
                    "suspended_reason",
                )
            },
        },
        "plans": [plan.model_dump() for plan in await _plans(here)],
        "quota": await quota_or_none(here, tenant),
        "quota_override_usd": None if override is None else _usd(override),
        "month": report.sums(rows, with_cost=True),
        "by_model": report.by_model(rows, with_cost=True),
        "instance": await _instance(here, tenant),
        "audit": [
            {**entry, "action": _ACTS.get(entry["action"], entry["action"])} for entry in entries
        ],
        "zone": zone_name,
        "problems": [problem] if problem else [],
        "values": values or {},
        "errors": errors or {},
        "form": form_name,
    }
    return await page(request, "admin/tenant.html", context, status)


async def _instance(here: Parts, tenant: str) -> dict[str, Any] | None:
    try:
        found = await here.instances.ask(tenant)
    except AlcoveError:
        return None
    return found.model_dump(exclude={"url", "owner_uid"})


async def _plans(here: Parts) -> list[Plan]:
    try:
        return await here.quotas.plans()
    except AlcoveError:
        return []


async def _sent(request: Request) -> dict[str, str]:
    return {k: v for k, v in (await form(request)).items() if isinstance(v, str)}


def _limit(typed: str) -> int | None:
    if not typed:
        return None
    try:
        nanos = money.parse_usd(typed)
    except ValueError as error:
        raise AlcoveError("invalid", f"{error}.", field="limit_usd") from None
    if nanos > 1_000_000 * money.NANOS_PER_USD:
        raise AlcoveError("invalid", "At most a million dollars.", field="limit_usd")
    return nanos


def _usd(nanos: int) -> str:
    whole, part = divmod(nanos, money.NANOS_PER_USD)
    digits = f"{part:09d}".rstrip("0")
    return f"{whole}.{digits:0<2}"
