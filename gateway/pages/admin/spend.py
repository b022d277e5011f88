"""Spend of all tenants: by day and model, by provider and payer, who spent most; and the ledger as a file."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse

from gateway import words
from gateway.pages import report
from gateway.pages.render import page, zone
from gateway.pages.usage import by_payer
from gateway.tenants import audit
from gateway.web.identity import Admin, actor, admin
from gateway.web.parts import Parts, parts
from infra.kit import ids
from infra.kit.errors import AlcoveError
from metering_proxy.wire import UsageRow

router = APIRouter(prefix="/admin", dependencies=[Depends(admin)])

_SPANS, _TOP = (7, 30, 90), 10
_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}


@router.get("/spend")
async def spend(request: Request, days: str = "30") -> Response:
    """The page; days are cut in the reader's zone."""
    here, zone_name = parts(request), zone(request)
    span = _span(days)
    today = words.day_start(here.clock.now_at(), zone_name).date()
    first = today - timedelta(days=span - 1)
    problems: list[str] = []
    rows: list[UsageRow] = []
    top: list[dict[str, Any]] = []
    by_provider: list[dict[str, Any]] = []
    try:
        from_at = words.midnight(first, zone_name)
        to_at = here.clock.now_at() + 1
        rows = await _paid_here(here, from_at, to_at, zone_name)
        top = await _top(here, from_at, to_at, zone_name)
        by_provider = await _by_provider(here, from_at, to_at, zone_name)
    except AlcoveError:
        problems.append("The meter does not answer just now. Everything is counted meanwhile.")
    context: dict[str, Any] = {
        "days": span,
        "zone": zone_name,
        "chart": report.chart(rows, first, today),
        "by_model": report.by_model(rows, with_cost=True),
        "by_provider": by_provider,
        "totals": report.sums(rows, with_cost=True),
        "top": top,
        "problems": problems,
    }
    return await page(request, "admin/spend.html", context)


@router.get("/spend/export")
async def export(
    request: Request, person: Admin, days: str = "30", format: str = "csv", tenant: str = ""
) -> Response:
    """Every entry of the span as a file, of all tenants or of one; who took it out is written down."""
    here, zone_name = parts(request), zone(request)
    span = _span(days)
    form: Literal["csv", "jsonl"] = "jsonl" if format == "jsonl" else "csv"
    whose = tenant if ids.is_tenant_id(tenant) else None
    if tenant and whose is None:
        raise AlcoveError("not_found", "There is no such tenant.")
    first = words.day_start(here.clock.now_at(), zone_name).date() - timedelta(days=span - 1)
    entries = here.meter.export(
        from_at=words.midnight(first, zone_name),
        to_at=here.clock.now_at() + 1,
        form=form,
        tenant=whose,
    )
    # Asked before the answer begins: a meter that is away is told as an error, not as a short file.
    begun = await anext(entries, b"")
    async with here.db.transaction() as tx:
        what = f"{span} days, {form}"
        await audit.write(tx, actor(request, person), "entries.exported", tenant=whose, after=what)
    name = f"alcove-{first.isoformat()}-{span}-days.{form}"
    return StreamingResponse(
        _all(begun, entries),
        media_type=_TYPES[form],
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )


def _span(days: str) -> int:
    return int(days) if days in {str(each) for each in _SPANS} else 30


async def _all(begun: bytes, entries: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield begun
    async for part in entries:
        yield part


async def _paid_here(here: Parts, from_at: int, to_at: int, zone_name: str) -> list[UsageRow]:
    """What the house pays: calls with people's own keys are no cost of it."""
    found = await here.meter.usage(
        from_at=from_at, to_at=to_at, zone=zone_name, group=("day", "model", "payer")
    )
    return by_payer(found.rows)[0]


async def _by_provider(
    here: Parts, from_at: int, to_at: int, zone_name: str
) -> list[dict[str, Any]]:
    found = await here.meter.usage(
        from_at=from_at, to_at=to_at, zone=zone_name, group=("provider", "payer")
    )
    rows = [row.model_dump() for row in found.rows]
    return sorted(rows, key=lambda row: (-row["cost_nanos"], row["provider"], row["payer"]))


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
