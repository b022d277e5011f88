"""The audit of the whole house: what people did, and what the meter noted by itself. Newest first, in pages."""

from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from gateway.acts import ACTS, NOTES
from gateway.pages.render import page, see_other
from gateway.tenants import audit
from gateway.web.identity import admin
from gateway.web.parts import Parts, parts
from infra.kit import ids
from infra.kit.errors import AlcoveError

router = APIRouter(prefix="/admin/audit", dependencies=[Depends(admin)])

_AWAY = "The meter does not answer just now, so what it noted cannot be shown."
_NOBODY = "Nobody has this address."


@router.get("")
async def listing(
    request: Request, q: str = "", act: str = "", by: str = "", before: str = ""
) -> Response:
    """The list. `q`: whom it was about, or who did it, by address or a tenant's id; `act`: one sort of act; `by` =
    `meter`: what the meter noted; `before`: the last row of the page before."""
    here, asked = parts(request), q.strip()[:254]
    if before and not ids.is_ulid(before):
        return see_other(request, "/admin/audit")
    of_meter = by == "meter"
    tenant = await here.directory.find(asked) if asked else None
    context: dict[str, Any] = {
        "q": asked,
        "act": act if act in ACTS and not of_meter else "",
        "acts": sorted(ACTS.items(), key=lambda item: item[1]),
        "by": "meter" if of_meter else "",
        "rows": [],
        "next": None,
        "first": not before,
        "problems": [],
    }
    if of_meter and asked and tenant is None:
        context["problems"] = [_NOBODY]
    elif of_meter:
        await _noted(here, tenant, before, context)
    else:
        await _done(here, tenant, before, context)
    emails = await here.directory.emails(list({r["tenant"] for r in context["rows"]} - {None}))
    for row in context["rows"]:
        row["email"] = emails.get(row["tenant"] or "", row["tenant"])
    return await page(request, "admin/audit.html", context)


async def _done(here: Parts, tenant: str | None, before: str, context: dict[str, Any]) -> None:
    """What people did."""
    async with here.db.read() as reading:
        found = await audit.listed(
            reading,
            who=context["q"],
            whom=tenant,
            action=context["act"] or None,
            before=before or None,
        )
    shown = found[: audit.PAGE]
    context["next"] = shown[-1]["id"] if len(found) > len(shown) else None
    context["rows"] = [
        {**row, "action": ACTS.get(row["action"], row["action"]), "detail": None} for row in shown
    ]


async def _noted(here: Parts, tenant: str | None, before: str, context: dict[str, Any]) -> None:
    """What the meter noted, in the same shape."""
    try:
        found = await here.meter.audit(tenant=tenant, before=before or None)
    except AlcoveError:
        context["problems"] = [_AWAY]
        return
    nobody = dict.fromkeys(("reason", "before", "after", "ip", "request_id"))
    context["rows"] = [
        {
            **nobody,
            **row.model_dump(exclude={"what"}),
            "actor": "The meter",
            "action": NOTES.get(row.what, row.what.replace("_", " ")),
        }
        for row in found.rows
    ]
    context["next"] = found.next
