"""Who answers in whose place: chains of models that are asked, in order, when one fails before its first word."""

from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from gateway.pages.render import page, see_other
from gateway.tenants import audit
from gateway.web.identity import Admin, actor, admin, form, written_by_our_page
from gateway.web.parts import parts
from gateway.words import sentence
from infra.kit.errors import AlcoveError

router = APIRouter(
    prefix="/admin/fallbacks", dependencies=[Depends(admin), Depends(written_by_our_page)]
)
_HOME = "/admin/fallbacks"
_MOST = 8


@router.get("")
async def show(request: Request) -> Response:
    """The page."""
    return await _show(request)


@router.post("")
async def put(request: Request, person: Admin) -> Response:
    """Replaces one chain; without targets it is gone."""
    here, sent = parts(request), await form(request)
    name, typed = str(sent.get("name", "")).strip(), str(sent.get("targets", ""))
    targets = typed.split()
    values = {"name": name, "targets": typed}
    try:
        if not name or len(name) > 264 or not name.isascii() or set(name) & set(" ?#%\\"):
            raise AlcoveError("invalid", "Name a model, or an alias of your own.", field="name")
        if len(targets) > _MOST:
            raise AlcoveError("invalid", f"At most {_MOST} models.", field="targets")
        before = next((f.targets for f in await here.meter.fallbacks() if f.name == name), [])
        after = await here.meter.put_fallback(name, targets)
    except AlcoveError as error:
        if error.code not in ("invalid", "unavailable", "timeout"):
            raise
        field = str(error.details.get("field", "targets"))
        return await _show(request, values, {field: _problem(error)}, error.status)
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
        "values": values or {"name": "", "targets": ""},
        "errors": errors or {},
        "problems": problems,
    }
    return await page(request, "admin/fallbacks.html", context, status)


def _problem(error: AlcoveError) -> str:
    fields = error.details.get("fields")
    found = fields[0].get("problem") if isinstance(fields, list) and fields else None
    return sentence(str(found or error.message))
