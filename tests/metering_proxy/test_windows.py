"""Windows follow each other without a gap, whatever the month, the zone and the hour."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.kit.errors import AlcoveError
from metering_proxy.ledger import windows
from metering_proxy.ledger.windows import Period, Rolling

_ZONES = [
    "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Havana",
    "America/St_Johns", "Pacific/Chatham", "Africa/Casablanca", "Antarctica/Troll",
]  # fmt: skip


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
        # Offsets of half and quarter hours, two hours of summer, summer in winter, a zone that changes altogether.
        ("Asia/Kolkata", "2026-12-31", 24),
        ("Asia/Tehran", "2022-03-22", 23),
        ("Australia/Adelaide", "2026-04-05", 25),
        ("America/St_Johns", "2026-03-08", 23),
        ("Pacific/Chatham", "2026-09-27", 23),
        ("Antarctica/Troll", "2026-03-29", 22),
        ("Africa/Casablanca", "2026-02-15", 25),
        ("Europe/Dublin", "2026-10-25", 25),
        ("Atlantic/Azores", "2026-03-29", 23),
        ("America/Nuuk", "2026-10-24", 25),
        ("America/Santiago", "2026-09-06", 23),
        ("America/Scoresbysund", "2024-03-31", 24),
        ("Asia/Pyongyang", "2018-05-04", 23.5),
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


@pytest.mark.parametrize(
    ("zone", "month", "hours"),
    [
        ("Asia/Kolkata", "2026-02", 28 * 24),
        ("Asia/Kathmandu", "2028-02", 29 * 24),
        ("Australia/Adelaide", "2026-04", 30 * 24 + 1),
        ("Australia/Lord_Howe", "2026-10", 31 * 24 - 0.5),
        ("Pacific/Chatham", "2026-09", 30 * 24 - 1),
        ("America/St_Johns", "2026-11", 30 * 24 + 1),
        ("Europe/Berlin", "2030-03", 31 * 24 - 1),
        ("Antarctica/Troll", "2026-10", 31 * 24 + 2),
        # Samoa slept through a day, and began the next month on time.
        ("Pacific/Apia", "2011-12", 30 * 24),
    ],
)
def test_calendar_month_is_as_long_as_its_clocks_say(zone: str, month: str, hours: float) -> None:
    tz = ZoneInfo(zone)
    start, end = windows.span("month", _at(f"{month}-15T12:00", zone), tz)
    assert (start, end - start) == (_at(f"{month}-01", zone), hours * 3_600_000)
    for at in (start, end - 1):
        assert windows.span("month", at, tz) == (start, end)
    assert windows.span("month", end, tz)[0] == end
    assert windows.span("month", start - 1, tz)[1] == start


# When clocks go back, and a day on which they go forward: a time of day that is there twice, and then not at all.
@pytest.mark.parametrize(
    ("zone", "back", "forward"),
    [
        ("America/Havana", "2026-11-01T04:00", "2027-03-14T04:00"),
        ("Europe/London", "2026-10-25T00:00", "2027-03-28T00:00"),
        ("America/Santiago", "2027-04-04T02:00", "2027-09-05T03:00"),
        ("Asia/Beirut", "2026-10-24T20:00", "2027-03-27T21:00"),
        ("Atlantic/Azores", "2026-10-25T00:00", "2027-03-28T00:00"),
        ("America/Nuuk", "2026-10-25T00:00", "2027-03-28T00:00"),
        ("Australia/Lord_Howe", "2026-04-04T14:00", "2026-10-03T14:00"),
        ("America/St_Johns", "2026-11-01T03:00", "2027-03-14T04:00"),
        ("Pacific/Chatham", "2026-04-04T13:00", "2026-09-26T13:00"),
        ("Antarctica/Troll", "2026-10-24T23:00", "2027-03-27T23:00"),
    ],
)
@pytest.mark.parametrize("period", ["day", "month"])
def test_window_is_whole_whose_beginning_is_there_twice_or_not_at_all(
    zone: str, back: str, forward: str, period: Period
) -> None:
    quarter, hour = 900_000, 3_600_000
    for anchor in range(_at(back) - hour, _at(back) + 4 * hour, quarter):
        rolling = Rolling(ZoneInfo(zone), anchor)
        assert rolling.span(period, anchor)[0] <= anchor < rolling.span(period, anchor)[1]
        for at in range(_at(forward) - 4 * hour, _at(forward) + 28 * hour, quarter):
            start, end = rolling.span(period, at)
            assert start <= at < end, (anchor, at)
            assert rolling.span(period, end)[0] == end


NO_ZONES = (
    "", ".", "..", "../UTC", "/etc/passwd", "Europe", "utc", "UTC ", "UTC\0", "\ud800", "zone.tab", "Etc/GMT 14",
    "localtime", "posixrules", "Factory", "right/UTC", "right/Europe/Berlin", "x" * 5_000,
)  # fmt: skip


@pytest.mark.parametrize("name", NO_ZONES)
def test_zone_is_refused_that_is_none_or_not_everybodys(name: str) -> None:
    with pytest.raises(AlcoveError) as caught:
        windows.zone(name)
    assert (caught.value.code, caught.value.reason) == ("invalid", "zone")


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
