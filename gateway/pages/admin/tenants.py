"""The list of tenants: searched, filtered, sorted, in pages. One tenant is tenant.py's matter."""

from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from gateway.pages.render import page, see_other, wants_part, zone
from gateway.tenants.directory import Query
from gateway.web.identity import admin
from gateway.web.parts import Parts, parts
from infra.kit.errors import AlcoveError
from metering_proxy.wire import Plan

router = APIRouter(prefix="/admin", dependencies=[Depends(admin)])


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
            for name in ("q", "plan", "status", "state", "mark", "sort", "order", "page", "size")
        },
        "pages": max(1, -(-found.total // query.size)),
        "plans": [plan.name for plan in await plans(here)],
        "zone": query.zone,
        "problems": found.problems,
    }
    name = "admin/_tenants.html" if wants_part(request) else "admin/tenants.html"
    return await page(request, name, context)


async def plans(here: Parts) -> list[Plan]:
    """The plans; none while the meter cannot be asked."""
    try:
        return await here.quotas.plans()
    except AlcoveError:
        return []
