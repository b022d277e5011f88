"""Reports: days of the zone that was asked for, sums that SQL made over the whole filter."""

import json
from datetime import UTC, datetime
from itertools import combinations, pairwise
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import insert

from infra.kit import ids
from infra.kit.errors import AlcoveError
from metering_proxy import models, usage, wire
from metering_proxy.ledger import windows
from tests.metering_proxy.house import House

pytestmark = pytest.mark.thorough

_A, _B, _C = "a" * 16, "b" * 16, "c" * 16


def _at(text: str, zone: str = "UTC") -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


async def _spend(
    house: House, account: str, at: int, charge: int, model: str = "p/m", kind: str = "usage"
) -> None:
    values = {
        "request_id": ids.ulid(),
        "attempt": 1,
        "kind": kind,
        "account": account,
        "at": at,
        "started_at": at,
        "month_start_at": windows.span("month", at, UTC)[0],
        "wire": "openai_chat",
        "provider": model.partition("/")[0],
        "model": model,
        "response_model": None,
        "price_id": "x",
        "payer": "operator",
        "outcome": "complete",
        "estimated": 0,
        "overrun": 0,
        "input_tokens": 10,
        "cache_read_tokens": 1,
        "cache_write_tokens": 2,
        "output_tokens": 3,
        "parts": "{}",
        "markup_ppm": 0,
        "cost_nanos": charge - 1,
        "charge_nanos": charge,
    }
    async with house.db.transaction() as tx:
        await tx.execute(insert(models.entry).values(values))


@pytest.mark.parametrize(
    ("day", "zone", "hours"),
    [
        ("2026-03-29", "Europe/Berlin", 23),
        ("2026-10-25", "Europe/Berlin", 25),
        ("2026-03-08", "America/New_York", 23),
        ("2026-04-05", "Australia/Lord_Howe", 24.5),
        ("2028-02-29", "Asia/Kathmandu", 24),
        ("2026-09-06", "America/Santiago", 23),
    ],
)
def test_day_is_as_long_as_its_zone_says(day: str, zone: str, hours: float) -> None:
    at = _at(f"{day}T12:00", zone)
    start, end = windows.span("day", at, ZoneInfo(zone))
    assert end - start == hours * 3_600_000
    assert windows.span("day", start, ZoneInfo(zone)) == (start, end)
    assert windows.span("day", end - 1, ZoneInfo(zone)) == (start, end)
    assert windows.span("day", end, ZoneInfo(zone))[0] == end


@pytest.mark.parametrize(
    ("at", "zone", "start", "end"),
    [
        ("2026-12-31T23:59", "UTC", "2026-12-01", "2027-01-01"),
        ("2026-01-31T10:00", "Asia/Tokyo", "2026-01-01", "2026-02-01"),
        ("2028-02-29T10:00", "America/New_York", "2028-02-01", "2028-03-01"),
    ],
)
def test_month_begins_and_ends_by_its_zones_clock(at: str, zone: str, start: str, end: str) -> None:
    found = windows.span("month", _at(at, zone), ZoneInfo(zone))
    assert found == (_at(start, zone), _at(end, zone))


async def test_usage_is_grouped_by_the_days_of_a_zone_across_daylight_saving(both: House) -> None:
    zone = "Europe/Berlin"
    for text in ("2026-10-24T23:59", "2026-10-25T00:00", "2026-10-25T23:59", "2026-10-26T00:00"):
        await _spend(both, _A, _at(text, zone), 100)
    await _spend(both, _B, _at("2026-10-25T02:30", zone), 7, model="q/n")
    period = {"from_at": _at("2026-10-24", zone), "to_at": _at("2026-10-27", zone), "zone": zone}
    report = await both.client.usage(**period, group=("day",))  # type: ignore[arg-type]
    assert [(row.day, row.charge_nanos, row.requests) for row in report.rows] == [
        ("2026-10-24", 100, 1),
        ("2026-10-25", 207, 3),
        ("2026-10-26", 100, 1),
    ]
    assert (report.totals.charge_nanos, report.totals.cost_nanos) == (407, 402)
    utc = await both.client.usage(**{**period, "zone": "UTC"}, group=("day",))  # type: ignore[arg-type]
    assert [row.charge_nanos for row in utc.rows] == [200, 207]


async def test_usage_can_be_grouped_by_everything_and_filtered_by_tenant(both: House) -> None:
    at = _at("2026-05-05T12:00")
    await _spend(both, _A, at, 5)
    await _spend(both, _A, at, 6, model="q/n")
    await _spend(both, _B, at, 7)
    await _spend(both, _A, at, -2, kind="correction_1")
    period = {"from_at": _at("2026-05-01"), "to_at": _at("2026-06-01")}
    by_all = await both.client.usage(**period, group=("day", "model", "tenant", "provider"))
    assert len(by_all.rows) == 3
    mine = await both.client.usage(**period, group=("model",), tenant=_A)
    assert [(r.model, r.charge_nanos, r.requests) for r in mine.rows] == [
        ("p/m", 3, 1),
        ("q/n", 6, 1),
    ]
    assert (mine.totals.charge_nanos, mine.totals.requests, mine.totals.output_tokens) == (9, 2, 9)
    none = await both.client.usage(**period, group=(), tenant=_C)
    assert none.totals == wire.Sums.model_validate(dict.fromkeys(wire.Sums.model_fields, 0))


_MEASURES = (
    "input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "cost_nanos",
    "charge_nanos",
)
_EVERY_GROUPING = [c for n in range(6) for c in combinations(usage.GROUPS, n)]


@pytest.mark.parametrize(
    ("zone", "first", "last"),
    [
        ("UTC", "2028-02-28", "2028-03-02"),
        ("Asia/Kolkata", "2026-12-30", "2027-01-02"),
        ("Australia/Lord_Howe", "2026-04-04", "2026-04-07"),
        ("America/St_Johns", "2026-10-31", "2026-11-03"),
        ("America/Havana", "2027-03-13", "2027-03-16"),
        ("Pacific/Chatham", "2026-09-26", "2026-09-29"),
        ("Pacific/Apia", "2011-12-28", "2012-01-02"),
    ],
)
async def test_sums_of_every_grouping_are_the_totals_and_what_the_file_says(
    both: House, zone: str, first: str, last: str
) -> None:
    from_at, to_at = _at(first, zone), _at(last, zone)
    for n, at in enumerate(range(from_at - 3_600_000, to_at + 3_600_000, 1_800_000)):
        kind = ("usage", "attempt", "correction_1")[n % 3]
        sign = -1 if kind == "correction_1" else 1
        await _spend(
            both, (_A, _B)[n % 2], at, sign * (n + 7), f"{'pq'[n % 2]}/{'mno'[n % 3]}", kind
        )
    lines = b"".join(
        [p async for p in both.client.export(from_at=from_at, to_at=to_at, form="jsonl")]
    )
    entries = [json.loads(line) for line in lines.splitlines()]
    sums = {name: sum(int(entry[name]) for entry in entries) for name in _MEASURES}
    sums["requests"] = sum(entry["kind"] == "usage" for entry in entries)
    assert len(entries) == (to_at - from_at) // 1_800_000
    for group in _EVERY_GROUPING:
        report = await both.client.usage(from_at=from_at, to_at=to_at, zone=zone, group=group)
        for name, total in sums.items():
            assert getattr(report.totals, name) == total, (group, name)
            assert sum(getattr(row, name) for row in report.rows) == total, (group, name)
        keys = [tuple(getattr(row, name) for name in usage.GROUPS) for row in report.rows]
        assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("late", [2**47 + 1, 253_402_300_800_000, 2**53])
async def test_days_of_a_year_that_no_calendar_has_are_refused(both: House, late: int) -> None:
    for zone in ("UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"):
        with pytest.raises(AlcoveError) as caught:
            await both.client.usage(
                from_at=late - 86_400_000, to_at=late, zone=zone, group=("day",)
            )
        assert (caught.value.code, caught.value.reason) == ("invalid", "period")
    assert (await both.client.usage(from_at=late - 1, to_at=late, group=("model",))).rows == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"zone": "Mars/Olympus"}, "zone"),
        ({"zone": "../etc/passwd"}, "zone"),
        ({"group": ("colour",)}, "group"),
        ({"to_at": _at("2030-01-01"), "group": ("day",)}, "period"),
    ],
)
async def test_report_is_refused_when_it_makes_no_sense(
    house: House, change: dict[str, object], reason: str
) -> None:
    asked = {"from_at": _at("2026-05-01"), "to_at": _at("2026-06-01"), **change}
    with pytest.raises(AlcoveError) as caught:
        await house.client.usage(**asked)  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.reason) == ("invalid", reason)


async def test_tenants_are_paged_by_spend_with_totals_of_the_whole_query(both: House) -> None:
    now_at = round(datetime.now(UTC).timestamp() * 1000)
    month, _ = windows.span("month", now_at, UTC)
    for account, charge in ((_A, 10), (_B, 30), (_C, 20)):
        await _spend(both, account, now_at, charge)
        await _spend(both, account, month - 1, 1_000)
    await both.client.put_tenant(_C, wire.TenantState(plan="plus", status="active", version=1))
    await both.client.put_tenant(
        "d" * 16, wire.TenantState(plan="free", status="active", version=1)
    )
    ids_given = [_A, _B, _C, "d" * 16]
    page = await both.client.query_tenants(wire.TenantsQuery(ids=ids_given, limit=2))
    assert [(r.tenant, r.charge_month_nanos, r.charge_today_nanos) for r in page.rows] == [
        (_B, 30, 30),
        (_C, 20, 20),
    ]
    assert page.rows[1].quota_limit_nanos == 20_000_000_000
    assert page.total == 4
    assert (page.totals.charge_month_nanos, page.totals.requests_month) == (60, 3)
    asked = wire.TenantsQuery(ids=ids_given, limit=2, offset=2, order="asc", sort="charge_today")
    rows = (await both.client.query_tenants(asked)).rows
    assert [row.tenant for row in rows] == [_C, _B]
    everyone = await both.client.query_tenants(wire.TenantsQuery())
    assert {row.tenant for row in everyone.rows} == {_C, "d" * 16}  # those that it has heard of
    nobody = await both.client.query_tenants(wire.TenantsQuery(ids=[]))
    assert (nobody.rows, nobody.total, nobody.totals.charge_month_nanos) == ([], 0, 0)


async def test_thousands_of_ids_are_no_difficulty(both: House) -> None:
    many = [ids.tenant_id() for _ in range(5_000)]
    page = await both.client.query_tenants(wire.TenantsQuery(ids=many, limit=1))
    assert page.total == 5_000


async def test_reports_survive_sums_beyond_a_float(both: House) -> None:
    at = _at("2026-05-05")
    for _ in range(3):
        await _spend(both, _A, at, 2**53 + 1)
    report = await both.client.usage(from_at=at, to_at=at + 1, group=())
    assert report.totals.charge_nanos == 3 * (2**53 + 1)


def test_days_cover_a_period_without_gap() -> None:
    zone = ZoneInfo("Europe/Berlin")
    days = windows.days(_at("2026-03-20"), _at("2026-04-05"), zone)
    assert all(a[2] == b[1] for a, b in pairwise(days))
    assert len({day for day, _, _ in days}) == len(days) == 17
