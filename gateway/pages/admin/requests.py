"""Calls of models: the newest, those of one tenant, and one in every detail. Texts are kept by nobody."""

from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from gateway.pages.render import page, see_other
from gateway.web.identity import admin
from gateway.web.parts import parts
from infra.kit import ids
from infra.kit.errors import AlcoveError

router = APIRouter(prefix="/admin/requests", dependencies=[Depends(admin)])

_AWAY = "The meter does not answer just now, so calls cannot be shown."


@router.get("")
async def listing(request: Request, q: str = "", before: str = "", only: str = "") -> Response:
    """The list. `q`: the number of a call leads to it; an e-mail address or a tenant's id to its calls.

    `only` = `failed`: those that came to no good end.
    """
    here, asked, failed = parts(request), q.strip()[:254], only == "failed"
    if ids.is_ulid(asked):
        return see_other(request, f"/admin/requests/{asked}")
    tenant = await here.directory.find(asked) if asked else None
    context: dict[str, Any] = {
        "q": asked,
        "only": "failed" if failed else "",
        "rows": [],
        "next": None,
        "first": not before,
        "tenant": tenant,
        "problems": [],
    }
    if asked and tenant is None:
        return await page(request, "admin/requests.html", context)
    try:
        found = await here.meter.requests(tenant=tenant, before=before or None, failed=failed)
    except AlcoveError as error:
        if error.code == "invalid":
            return see_other(request, "/admin/requests")
        context["problems"] = [_AWAY]
        return await page(request, "admin/requests.html", context)
    emails = await here.directory.emails(list({row.tenant for row in found.rows}))
    context["rows"] = [
        {**row.model_dump(), "email": emails.get(row.tenant, row.tenant)} for row in found.rows
    ]
    context["next"] = found.next
    return await page(request, "admin/requests.html", context)


@router.get("/{call}")
async def detail(request: Request, call: str) -> Response:
    """One call: what was held, every entry, the price by which it was counted, and its moments."""
    here = parts(request)
    if not ids.is_ulid(call):
        raise AlcoveError("not_found", "There is no such call.")
    found = await here.meter.request(call)
    emails = await here.directory.emails([found.tenant])
    context: dict[str, Any] = {
        "call": found.model_dump(),
        "email": emails.get(found.tenant),
        "problems": [],
    }
    return await page(request, "admin/request.html", context)
