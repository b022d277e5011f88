"""Calendar windows of a time zone: when the one that holds a moment began, and when the next begins.

A window is keyed by its start, so nothing ever resets a counter. Days are those of the zone's clocks: 23 or 25
hours long where daylight saving begins or ends.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from infra.kit.errors import AlcoveError
from metering_proxy.plans import Period

_MINUTE_MS = 60_000


def zone(name: str) -> ZoneInfo:
    """The IANA zone of that name. Raises `invalid`."""
    try:
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
    date = day.date() + timedelta(days=later)
    return datetime(date.year, date.month, date.day, tzinfo=tz)


def _ms(moment: datetime) -> int:
    return round(moment.astimezone(UTC).timestamp() * 1000)
