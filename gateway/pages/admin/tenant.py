"""One tenant's page, as it is shown. What an admin does there is tenant_acts.py's matter."""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy.engine import RowMapping

from gateway.acts import ACTS
from gateway.pages import report
from gateway.pages.admin.tenants import plans
from gateway.pages.grants import grants_or_none
from gateway.pages.render import page, zone
from gateway.pages.usage import by_payer, month_rows, quota_or_none
from gateway.tenants import audit, store
from gateway.web.identity import admin
from gateway.web.parts import Parts, parts
from infra.kit import ids, money
from infra.kit.errors import AlcoveError

T = TypeVar("T")
_OF_THE_ROW = (
    "email",
    "plan",
    "status",
    "is_admin",
    "created_at",
    "last_seen_at",
    "suspended_reason",
    "egress",
)
router = APIRouter(prefix="/admin/tenants", dependencies=[Depends(admin)])


@router.get("/{tenant}")
async def one(request: Request, tenant: str) -> Response:
    """The page."""
    return await show(request, tenant)


async def show(
    request: Request,
    tenant: str,
    form_name: str | None = None,
    errors: dict[str, str] | None = None,
    values: dict[str, str] | None = None,
    status: int = 200,
    link: dict[str, Any] | None = None,
) -> Response:
    """The page, with what was wrong in one of its forms, or with a `link` that is shown this once.

    Raises `not_found`.
    """
    here, zone_name = parts(request), zone(request)
    if not ids.is_tenant_id(tenant):
        raise AlcoveError("not_found", "There is no such tenant.")
    async with here.db.read() as reading:
        row = await store.get(reading, tenant)
        entries = await audit.of_tenant(reading, tenant)
    rows, problem = await month_rows(here, tenant, zone_name)
    charged, own = by_payer(rows)
    quota, grants, instance, ways_out, ways_record, keys = await asyncio.gather(
        quota_or_none(here, tenant),
        grants_or_none(here, tenant),
        _or_none(here.instances.ask(tenant)),
        _or_none(here.meter.egress_day(tenant)),
        _or_none(here.meter.egress_record(tenant)),
        _or_none(_keys(here, tenant)),
    )
    context: dict[str, Any] = {
        "tenant": _shown(tenant, row),
        "plans": [plan.model_dump() for plan in await plans(here)],
        "quota": quota,
        "quota_override_usd": _usd(row["quota_charge_month_nanos"]),
        "month": report.sums(charged, with_cost=True),
        "own": report.sums(own, with_cost=True),
        "by_model": report.by_model(charged, with_cost=True),
        "instance": instance and instance.model_dump(exclude={"url", "owner_uid"}),
        "grants": grants,
        "new_grant": (values or {}).get("grant") or ids.ulid(),
        "ways_out": ways_out and ways_out.model_dump(),
        "ways_record": ways_record and ways_record.model_dump(),
        "keys": keys,
        "audit": [
            {**entry, "action": ACTS.get(entry["action"], entry["action"])} for entry in entries
        ],
        "zone": zone_name,
        "problems": [problem] if problem else [],
        "values": values or {},
        "errors": errors or {},
        "form": form_name,
        "link": link,
    }
    return await page(request, "admin/tenant.html", context, status)


def _shown(tenant: str, row: RowMapping) -> dict[str, Any]:
    return {"tenant": tenant, **{name: row[name] for name in _OF_THE_ROW}}


async def _keys(here: Parts, tenant: str) -> dict[str, Any]:
    """How many keys the person's programs hold, and to which connections the person has their own."""
    now_at = here.clock.now_at()
    held = [
        key
        for key in await here.meter.api_keys(tenant)
        if key.revoked_at is None and (key.expires_at is None or key.expires_at > now_at)
    ]
    own = [key.provider for key in await here.meter.own_keys(tenant)]
    return {"programs": len(held), "own": own}


async def _or_none(asked: Awaitable[T]) -> T | None:
    try:
        return await asked
    except AlcoveError:
        return None


def _usd(nanos: int | None) -> str | None:
    if nanos is None:
        return None
    whole, part = divmod(nanos, money.NANOS_PER_USD)
    digits = f"{part:09d}".rstrip("0")
    return f"{whole}.{digits:0<2}"
