"""Spend of all tenants: by day and model, and who spent most."""

from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Depends, Request, Response

from gateway import words
from gateway.pages import report
from gateway.pages.render import page, zone
from gateway.web.identity import admin
from gateway.web.parts import Parts, parts
from infra.kit.errors import AlcoveError
from metering_proxy.wire import UsageRow

router = APIRouter(prefix="/admin", dependencies=[Depends(admin)])

_SPANS, _TOP = (7, 30, 90), 10


@router.get("/spend")
async def spend(request: Request, days: str = "30") -> Response:
    """The page; days are cut in the reader's zone."""
    here, zone_name = parts(request), zone(request)
    span = int(days) if days in {str(each) for each in _SPANS} else 30
    today = words.day_start(here.clock.now_at(), zone_name).date()
    first = today - timedelta(days=span - 1)
    problems: list[str] = []
    rows: list[UsageRow] = []
    top: list[dict[str, Any]] = []
    try:
        from_at = _midnight(first, zone_name)
        to_at = here.clock.now_at() + 1
        rows = (await here.meter.usage(from_at=from_at, to_at=to_at, zone=zone_name)).rows
        top = await _top(here, from_at, to_at, zone_name)
    except AlcoveError:
        problems.append("The meter does not answer just now. Everything is counted meanwhile.")
    context: dict[str, Any] = {
        "days": span,
        "zone": zone_name,
        "chart": report.chart(rows, first, today),
        "by_model": report.by_model(rows, with_cost=True),
        "totals": report.sums(rows, with_cost=True),
        "top": top,
        "problems": problems,
    }
    return await page(request, "admin/spend.html", context)


async def _top(here: Parts, from_at: int, to_at: int, zone_name: str) -> list[dict[str, Any]]:
    found = await here.meter.usage(from_at=from_at, to_at=to_at, zone=zone_name, group=("tenant",))
    dearest = sorted(found.rows, key=lambda row: (-row.charge_nanos, row.tenant or ""))[:_TOP]
    ids = [row.tenant for row in dearest if row.tenant]
    emails = await here.directory.emails(ids)
    return [
        {
            "tenant": row.tenant,
            "email": emails.get(row.tenant or "", row.tenant),
            "charge_nanos": row.charge_nanos,
        }
        for row in dearest
        if row.charge_nanos > 0
    ]


def _midnight(day: date, zone_name: str) -> int:
    return words.at(datetime.combine(day, time(), ZoneInfo(zone_name)))
