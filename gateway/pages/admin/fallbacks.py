"""Who answers in whose place: chains of models that are asked, in order, when one fails before its first word."""

from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from gateway.pages.form_errors import errors_of
from gateway.pages.render import page, see_other
from gateway.tenants import audit
from gateway.web.identity import Admin, actor, admin, fields, written_by_our_page
from gateway.web.parts import parts
from infra.kit.errors import AlcoveError

router = APIRouter(
    prefix="/admin/fallbacks", dependencies=[Depends(admin), Depends(written_by_our_page)]
)
_HOME = "/admin/fallbacks"
_FIELDS, _MOST = ("name", "targets"), 8


@router.get("")
async def show(request: Request) -> Response:
    """The page."""
    return await _show(request)


@router.post("")
async def put(request: Request, person: Admin) -> Response:
    """Replaces one chain; without targets it is gone."""
    here, sent = parts(request), await fields(request)
    name, targets = sent.get("name", "").strip(), sent.get("targets", "").split()
    try:
        if not name or len(name) > 264 or not name.isascii() or set(name) & set(" ?#%\\"):
            raise AlcoveError("invalid", "Name a model, or an alias of your own.", field="name")
        if len(targets) > _MOST:
            raise AlcoveError("invalid", f"At most {_MOST} models.", field="targets")
        before = next(
            (f.targets for f in await here.meter.fallbacks() if f.name == name.lower()), []
        )
        after = await here.meter.put_fallback(name, targets)
    except AlcoveError as error:
        return await _show(request, sent, errors_of(error, "targets", _FIELDS), error.status)
    async with here.db.transaction() as tx:
        await audit.write(
            tx,
            actor(request, person),
            "fallback.changed",
            before=f"{name}: {', '.join(before) or 'nothing'}",
            after=f"{name}: {', '.join(after.targets) or 'nothing'}",
        )
    said = f"{name} is followed by {', '.join(targets)}." if targets else f"{name} stands alone."
    return see_other(request, _HOME, notice=said)


async def _show(
    request: Request,
    values: dict[str, str] | None = None,
    errors: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    here = parts(request)
    chains: list[dict[str, Any]] = []
    models: list[str] = []
    problems: list[str] = []
    try:
        chains = [chain.model_dump() for chain in await here.meter.fallbacks()]
        models = sorted(m.id for m in await here.meter.models() if m.alcove.kind == "chat")
    except AlcoveError:
        problems.append("The meter does not answer just now, so nothing can be shown or changed.")
    context: dict[str, Any] = {
        "chains": chains,
        "models": models,
        "values": {name: (values or {}).get(name, "") for name in _FIELDS},
        "errors": errors or {},
        "problems": problems,
    }
    return await page(request, "admin/fallbacks.html", context, status)
