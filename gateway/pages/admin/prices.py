"""What models cost and what plans give, to read; and prices that were wrong, made good by corrections.

Both lists are files of the meter that people review; nothing here changes them. A correction is tried first, and
entered with a reason.
"""

from datetime import date, timedelta
from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from gateway import words
from gateway.pages.admin.tenants import plans
from gateway.pages.form_errors import errors_of
from gateway.pages.render import page, see_other, zone
from gateway.tenants import audit
from gateway.web.identity import Admin, actor, admin, fields, written_by_our_page
from gateway.web.parts import parts
from infra.kit.errors import AlcoveError
from metering_proxy.wire import Price, Reprice, RepriceRequest

router = APIRouter(
    prefix="/admin/prices", dependencies=[Depends(admin), Depends(written_by_our_page)]
)
_AWAY = "The meter does not answer just now, so prices and plans cannot be shown."
_FIELDS = ("from_day", "to_day", "model", "whose")


@router.get("")
async def show(request: Request) -> Response:
    """The page."""
    return await _show(request)


@router.post("/corrections")
async def correct(request: Request, person: Admin) -> Response:
    """Tells what calls would cost by the prices of now; with `enter`, enters the differences."""
    here, sent = parts(request), await fields(request)
    enters = sent.get("step") == "enter"
    try:
        asked = await _asked(request, sent)
        why = audit.reason_given(sent.get("reason", "")) if enters else ""
        if enters:
            await _audit(request, person, asked, why)
        done = await here.meter.reprice(asked.model_copy(update={"dry_run": not enters}))
    except AlcoveError as error:
        return await _show(request, sent, errors_of(error, "", _FIELDS), status=error.status)
    if enters:
        said = f"{words.count(done.changed)} calls are corrected by {words.money(done.charge_nanos)} of charge."
        return see_other(request, "/admin/prices", notice=said)
    return await _show(request, sent, trial=done)


async def _asked(request: Request, sent: dict[str, str]) -> RepriceRequest:
    zone_name = zone(request)
    first, last = _day(sent, "from_day"), _day(sent, "to_day")
    if last < first:
        raise AlcoveError("invalid", "The last day is before the first.", field="to_day")
    tenant = None
    if whose := sent.get("whose", "").strip():
        tenant = await parts(request).directory.tenant_of(whose)
        if tenant is None:
            raise AlcoveError("invalid", "Nobody has this address.", field="whose")
    return RepriceRequest(
        from_at=words.midnight(first, zone_name),
        to_at=words.midnight(last + timedelta(days=1), zone_name),
        model=sent.get("model", "").strip()[:264] or None,
        tenant=tenant,
    )


async def _show(
    request: Request,
    values: dict[str, str] | None = None,
    errors: dict[str, str] | None = None,
    trial: Reprice | None = None,
    status: int = 200,
) -> Response:
    here, problems = parts(request), []
    prices: list[Price] = []
    try:
        prices = await here.meter.prices()
    except AlcoveError:
        problems.append(_AWAY)
    context: dict[str, Any] = {
        "prices": [each.model_dump() for each in sorted(prices, key=lambda p: p.model)],
        "plans": [each.model_dump() for each in await plans(here)],
        "zone": zone(request),
        "values": {name: (values or {}).get(name, "") for name in (*_FIELDS, "reason")},
        "errors": errors or {},
        "trial": trial.model_dump() if trial else None,
        "problems": problems,
    }
    return await page(request, "admin/prices.html", context, status)


async def _audit(request: Request, person: Admin, asked: RepriceRequest, why: str) -> None:
    span = f"{words.long_moment(asked.from_at)} to {words.long_moment(asked.to_at)}"
    what = f"{asked.model or 'every model'}, {span}"
    async with parts(request).db.transaction() as tx:
        await audit.write(
            tx,
            actor(request, person),
            "prices.corrected",
            tenant=asked.tenant,
            reason=why,
            after=what,
        )


def _day(sent: dict[str, str], field: str) -> date:
    try:
        found = date.fromisoformat(sent.get(field, "").strip())
    except ValueError:
        raise AlcoveError("invalid", "This is no day.", field=field) from None
    if not 2000 <= found.year < 9999:
        raise AlcoveError("invalid", "This is no day of ours.", field=field)
    return found
