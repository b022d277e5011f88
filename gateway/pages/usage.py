"""What the person's assistant used: today, this month, by model and day, in the reader's time zone."""

from typing import Any

from fastapi import APIRouter, Request, Response

from gateway import words
from gateway.pages import report
from gateway.pages.grants import grants_or_none
from gateway.pages.render import page, zone
from gateway.web.identity import Person
from gateway.web.parts import Parts, parts
from infra.kit.errors import AlcoveError
from metering_proxy.wire import UsageRow

router = APIRouter()

OWN = "tenant"  # the payer of calls with the person's own key


def by_payer(rows: list[UsageRow]) -> tuple[list[UsageRow], list[UsageRow]]:
    """Rows of calls that were paid here, and of those that the person paid with their own key."""
    ours = [row for row in rows if row.payer != OWN]
    return ours, [row for row in rows if row.payer == OWN]


@router.get("/usage")
async def usage(request: Request, person: Person) -> Response:
    """The page. Without the meter it says so and shows no invented zeros as a quota."""
    here, zone_name = parts(request), zone(request)
    now_at = here.clock.now_at()
    month = words.month_start(now_at, zone_name)
    today = words.day_start(now_at, zone_name)
    rows, problem = await month_rows(here, person.tenant, zone_name)
    charged, own = by_payer(rows)
    quota = await quota_or_none(here, person.tenant)
    context: dict[str, Any] = {
        "plan": {"name": person.plan, "title": await here.quotas.title(person.plan)},
        "zone": zone_name,
        "month_label": f"{month:%B %Y}",
        "quota": quota,
        "grants": await grants_or_none(here, person.tenant),
        "ways_out": await _ways_out(here, person.tenant),
        "today": report.sums(row for row in charged if row.day == today.date().isoformat()),
        "month": report.sums(charged),
        "by_model": report.by_model(charged),
        "own": report.by_model(own, with_cost=True),
        "chart": report.chart(charged, month.date(), today.date()),
        "problems": [problem] if problem else [],
    }
    return await page(request, "usage.html", context)


async def _ways_out(here: Parts, tenant: str) -> dict[str, Any] | None:
    """What the assistant's tools have taken of their day; None while the meter cannot be asked."""
    try:
        return (await here.meter.egress_day(tenant)).model_dump()
    except AlcoveError:
        return None


async def month_rows(here: Parts, tenant: str, zone_name: str) -> tuple[list[UsageRow], str | None]:
    """This month's rows by day, model and payer; or none, and the sentence that says why."""
    now_at = here.clock.now_at()
    try:
        found = await here.meter.usage(
            tenant=tenant,
            from_at=words.at(words.month_start(now_at, zone_name)),
            to_at=now_at + 1,
            zone=zone_name,
            group=("day", "model", "payer"),
        )
    except AlcoveError:
        return [], "The meter does not answer just now. Everything is counted and shown later."
    return found.rows, None


async def quota_or_none(here: Parts, tenant: str) -> dict[str, Any] | None:
    """*Quota* of the templates; None while the meter cannot be asked."""
    try:
        return (await here.quotas.of(tenant)).for_page()
    except AlcoveError:
        return None
