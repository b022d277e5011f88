"""The host: how instances run here, and whether the other rooms answer."""

from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from gateway.pages.render import page
from gateway.web.identity import admin
from gateway.web.parts import parts
from infra.kit.errors import AlcoveError

router = APIRouter(prefix="/admin", dependencies=[Depends(admin)])


@router.get("/host")
async def host(request: Request) -> Response:
    """The page."""
    here = parts(request)
    found, services = None, [{"name": "Gateway", "ok": True, "detail": "Shows this page."}]
    try:
        found = (await here.spawner.host()).model_dump()
        services.append({"name": "Spawner", "ok": True, "detail": "Answers."})
    except AlcoveError as error:
        services.append({"name": "Spawner", "ok": False, "detail": error.message})
    try:
        plans = await here.meter.plans()
        services.append({"name": "Meter", "ok": True, "detail": f"Answers; {len(plans)} plans."})
    except AlcoveError as error:
        services.append({"name": "Meter", "ok": False, "detail": error.message})
    context: dict[str, Any] = {"host": found, "services": services, "problems": []}
    return await page(request, "admin/host.html", context)
