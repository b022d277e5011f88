"""Windows of a time zone: when the one that holds a moment began, and when the next begins.

A window is keyed by its start, so nothing ever resets a counter. Days are those of the zone's clocks: 23 or 25
hours long where daylight saving begins or ends.
"""

import calendar
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Literal, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from infra.kit.errors import AlcoveError

Period = Literal["minute", "day", "month"]
_MINUTE_MS = 60_000
# Of the machine, not of the world; and clocks that count leap seconds, 27 s beside everybody else's.
_NO_ZONES = ("localtime", "posixrules", "Factory", "right/")


def zone(name: str) -> ZoneInfo:
    """The IANA zone of that name. Raises `invalid`."""
    try:
        if name.startswith(_NO_ZONES):
            raise ValueError(name)
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise AlcoveError("invalid", f"{name!r} is not a time zone", reason="zone") from None


def span(period: Period, at: int, tz: tzinfo) -> tuple[int, int]:
    """The window of `period` that holds `at`: its start and its end, which is the next one's start."""
    if period == "minute":
        start = at - at % _MINUTE_MS
        return start, start + _MINUTE_MS
    local = datetime.fromtimestamp(at / 1000, tz)
    if period == "day":
        first = datetime(local.year, local.month, local.day, tzinfo=tz)
        return _ms(first), _ms(_midnight(first, 1, tz))
    first = datetime(local.year, local.month, 1, tzinfo=tz)
    following = datetime(local.year + local.month // 12, local.month % 12 + 1, 1, tzinfo=tz)
    return _ms(first), _ms(following)


class Spans(Protocol):
    """Where windows of one account begin and end."""

    def span(self, period: Period, at: int) -> tuple[int, int]:
        """Start and end of the window that holds `at`."""
        ...


class Calendar:
    """The windows of one zone, with the current ones at hand: a request asks for several of them."""

    def __init__(self, tz: tzinfo) -> None:
        self.tz = tz
        self._current: dict[Period, tuple[int, int]] = {}

    def span(self, period: Period, at: int) -> tuple[int, int]:
        """As `span` of this module."""
        found = self._current.get(period)
        if found is None or not found[0] <= at < found[1]:
            found = self._current[period] = span(period, at, self.tz)
        return found


class Rolling:
    """Windows that follow each other from a moment on, at its time of day by the zone's clock.

    A month begins on that moment's day, or on the last day of a month that is too short for it; the next
    one is back on the day. Minutes are those of the clock.
    """

    def __init__(self, tz: tzinfo, anchor_at: int) -> None:
        self._tz = tz
        self._anchor = datetime.fromtimestamp(anchor_at / 1000, tz)

    def span(self, period: Period, at: int) -> tuple[int, int]:
        """As `span` of this module."""
        if period == "minute":
            return span(period, at, self._tz)
        local = datetime.fromtimestamp(at / 1000, self._tz)
        anchor = self._anchor
        if period == "day":
            number = (local.date() - anchor.date()).days
        else:
            number = (local.year - anchor.year) * 12 + local.month - anchor.month
        # Where clocks go forward at midnight, a time of day that is left out falls on the day before or after.
        while self._start(period, number) > at:
            number -= 1
        while self._start(period, number + 1) <= at:
            number += 1
        return self._start(period, number), self._start(period, number + 1)

    def _start(self, period: Period, number: int) -> int:
        """When window `number` from the anchor begins."""
        anchor = self._anchor
        if period == "day":
            day = anchor.date() + timedelta(days=number)
        else:
            year, month = divmod(anchor.year * 12 + anchor.month - 1 + number, 12)
            last = calendar.monthrange(year, month + 1)[1]
            day = date(year, month + 1, min(anchor.day, last))
        return _ms(datetime.combine(day, anchor.time(), tzinfo=self._tz))


def days(from_at: int, to_at: int, tz: tzinfo) -> list[tuple[str, int, int]]:
    """The days that [from_at, to_at) touches: ISO date, start, end."""
    found: list[tuple[str, int, int]] = []
    at = from_at
    while at < to_at:
        start, end = span("day", at, tz)
        found.append((datetime.fromtimestamp(start / 1000, tz).date().isoformat(), start, end))
        at = end
    return found


def _midnight(day: datetime, later: int, tz: tzinfo) -> datetime:
    then = day.date() + timedelta(days=later)
    return datetime(then.year, then.month, then.day, tzinfo=tz)


def _ms(moment: datetime) -> int:
    return round(moment.astimezone(UTC).timestamp() * 1000)
