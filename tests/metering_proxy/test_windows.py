"""Windows follow each other without a gap, whatever the month, the zone and the hour."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metering_proxy.ledger import windows
from metering_proxy.ledger.windows import Period, Rolling

_ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]


def _at(text: str, zone: str = "UTC") -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


@pytest.mark.parametrize(
    ("anchor", "at", "start", "end"),
    [
        ("2026-01-31T09:30", "2026-02-28T09:29", "2026-01-31T09:30", "2026-02-28T09:30"),
        ("2026-01-31T09:30", "2026-03-15T00:00", "2026-02-28T09:30", "2026-03-31T09:30"),
        ("2026-01-31T09:30", "2026-04-30T10:00", "2026-04-30T09:30", "2026-05-31T09:30"),
        ("2028-02-29T00:00", "2029-02-28T12:00", "2029-02-28T00:00", "2029-03-29T00:00"),
        ("2028-02-29T00:00", "2032-02-29T12:00", "2032-02-29T00:00", "2032-03-29T00:00"),
        ("2026-12-15T00:00", "2027-01-02T00:00", "2026-12-15T00:00", "2027-01-15T00:00"),
    ],
)
def test_month_begins_on_its_day_or_the_last_one_there_is(
    anchor: str, at: str, start: str, end: str
) -> None:
    rolling = Rolling(ZoneInfo("UTC"), _at(anchor))
    assert rolling.span("month", _at(at)) == (_at(start), _at(end))


@pytest.mark.parametrize(
    ("day", "hours"), [("2026-03-28", 23), ("2026-10-24", 25), ("2026-07-01", 24)]
)
def test_day_that_daylight_saving_falls_into_is_longer_or_shorter(day: str, hours: int) -> None:
    zone = "Europe/Berlin"
    rolling = Rolling(ZoneInfo(zone), _at("2026-01-05T18:00", zone))
    start, end = rolling.span("day", _at(f"{day}T20:00", zone))
    assert (start, end - start) == (_at(f"{day}T18:00", zone), hours * 3_600_000)


# Clocks that change at midnight, west and east of UTC, by half an hour, or at the end of a month.
@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("America/Los_Angeles", "2026-03-08", 23),
        ("America/Los_Angeles", "2026-11-01", 25),
        ("America/Havana", "2026-03-08", 23),
        ("America/Havana", "2026-11-01", 25),
        ("Africa/Cairo", "2026-04-24", 23),
        ("Africa/Cairo", "2026-10-29", 25),
        ("Asia/Beirut", "2026-03-29", 23),
        ("Asia/Beirut", "2026-10-24", 25),
        ("Australia/Lord_Howe", "2026-04-05", 24.5),
        ("Australia/Lord_Howe", "2026-10-04", 23.5),
        ("Europe/Berlin", "2030-03-31", 23),
        ("Pacific/Kiritimati", "2028-02-29", 24),
        ("Pacific/Pago_Pago", "2026-12-31", 24),
    ],
)
def test_calendar_day_is_as_long_as_its_clocks_say_and_holds_every_moment_of_it(
    zone: str, day: str, hours: float
) -> None:
    tz = ZoneInfo(zone)
    start, end = windows.span("day", _at(f"{day}T12:00", zone), tz)
    assert end - start == hours * 3_600_000
    for at in range(start, end, 900_000):
        assert windows.span("day", at, tz) == (start, end)
        assert datetime.fromtimestamp(at / 1000, tz).date().isoformat() == day
    assert windows.span("day", end, tz)[0] == end
    assert windows.span("day", start - 1, tz)[1] == start
    [told] = windows.days(start, end, tz)
    assert told == (day, start, end)


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "UTC", "Asia/Tokyo"])
def test_evening_of_a_months_last_day_belongs_to_that_month(zone: str) -> None:
    tz = ZoneInfo(zone)
    start, end = windows.span("month", _at("2028-02-29T23:59:59", zone), tz)
    assert (start, end) == (_at("2028-02-01", zone), _at("2028-03-01", zone))
    assert windows.span("month", end, tz)[0] == end


@given(
    zone=st.sampled_from(_ZONES),
    anchor_at=st.integers(_at("2020-01-01"), _at("2030-01-01")),
    after_ms=st.integers(0, 10 * 366 * 86_400_000),
    period=st.sampled_from(["day", "month"]),
)
def test_every_moment_lies_in_one_window_and_windows_touch(
    zone: str, anchor_at: int, after_ms: int, period: Period
) -> None:
    rolling, at = Rolling(ZoneInfo(zone), anchor_at), anchor_at + after_ms
    start, end = rolling.span(period, at)
    assert start <= at < end
    assert rolling.span(period, start) == (start, end)
    assert rolling.span(period, end - 1) == (start, end)
    assert rolling.span(period, end)[0] == end
