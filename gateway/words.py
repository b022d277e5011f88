"""Numbers, moments and sentences as people read them. The same on every page and in the stream."""

import re
from datetime import UTC, date, datetime, time
from fractions import Fraction
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_NANOS = 1_000_000_000
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+){0,2}")
_PLAIN_WORD = re.compile(r"[a-z]+(?:'s)?\s")
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def money(nanos: int | None) -> str:
    """Dollars: two decimals from a dollar, two significant digits below it, never `$0.00` for something."""
    if nanos is None:
        return "no limit"
    sign, size = ("−" if nanos < 0 else ""), abs(nanos)
    if size == 0:
        return "$0"
    places = 2
    if size < _NANOS:
        first = 10 - len(str(size))  # decimal place of the first digit that is not zero
        places = max(2, first + 1)
    scaled = round(Fraction(size * 10**places, _NANOS))
    whole, part = divmod(scaled, 10**places)
    digits = f"{part:0{places}d}"
    if whole == 0:
        digits = digits.rstrip("0").ljust(2, "0")
    elif size < _NANOS:
        digits = "00"
    return f"{sign}${whole:,}.{digits}"


def count(n: int | None) -> str:
    """With thousands separators; a dash for what is not known."""
    return "–" if n is None else f"{n:,}"


def size(n_bytes: int) -> str:
    """`812 bytes`, `3.4 KB`, `1.2 GB`: thousands, as networks count."""
    if n_bytes < 1000:
        return _plural(n_bytes, "byte")
    units = iter(("KB", "MB", "GB", "TB"))
    amount, unit = n_bytes / 1000, next(units)
    while amount >= 999.5 and (larger := next(units, None)):
        amount, unit = amount / 1000, larger
    digits = f"{amount:.1f}" if amount < 99.95 else f"{amount:.0f}"
    return f"{digits.removesuffix('.0')} {unit}"


def took(ms: int) -> str:
    """`14 ms`, `1.4 s`, `12 s`, `3 min 5 s`: how long something took."""
    if ms < 1_000:
        return f"{max(ms, 0)} ms"
    if ms < 9_950:
        return f"{ms / 1000:.1f} s"
    seconds = round(ms / 1000)
    if seconds < _MINUTE:
        return f"{seconds} s"
    return f"{seconds // _MINUTE} min {seconds % _MINUTE} s"


def sentence(text: str) -> str:
    """What a service said in a few small letters, as a sentence. A name or an address keeps its letters."""
    if _PLAIN_WORD.match(text):
        text = text[0].upper() + text[1:]
    return text if not text or text[-1] in ".!?…" else f"{text}."


def moment(at: int) -> datetime:
    """The moment as a datetime in UTC."""
    return datetime.fromtimestamp(at / 1000, UTC)


def iso(at: int) -> str:
    """The moment for a `datetime` attribute, to the second."""
    return moment(at).strftime("%Y-%m-%dT%H:%M:%SZ")


def day(when: datetime) -> str:
    """`3 Nov 2026`."""
    return f"{when.day} {when:%b %Y}"


def long_moment(at: int) -> str:
    """`3 November 2026, 14:05 UTC`."""
    when = moment(at)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"


def short_moment(at: int) -> str:
    """`3 Nov 2026, 14:05 UTC`."""
    when = moment(at)
    return f"{day(when)}, {when:%H:%M} UTC"


def exact_moment(at: int) -> str:
    """`3 Nov 2026, 14:05:09 UTC`."""
    when = moment(at)
    return f"{day(when)}, {when:%H:%M:%S} UTC"


def distance(at: int, now_at: int) -> str:
    """How long ago, or in how long; from 30 days on the date."""
    seconds = (now_at - at) / 1000
    size = abs(seconds)
    if size < 45:
        return "just now"
    if size >= 30 * _DAY:
        return day(moment(at))
    if size < 45 * _MINUTE:
        span = _plural(max(1, round(size / _MINUTE)), "minute")
    elif size < 22 * _HOUR:
        span = _plural(max(1, round(size / _HOUR)), "hour")
    else:
        days = max(1, round(size / _DAY))
        if days == 1:
            return "yesterday" if seconds > 0 else "tomorrow"
        span = _plural(days, "day")
    return f"{span} ago" if seconds > 0 else f"in {span}"


def zone(name: str | None) -> str:
    """The IANA zone that `name` is, else `UTC`."""
    if not name or not _ZONE.fullmatch(name):
        return "UTC"
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "UTC"


def month_start(now_at: int, zone_name: str) -> datetime:
    """Midnight of the month's first day in the zone."""
    local = moment(now_at).astimezone(ZoneInfo(zone_name))
    return local.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def day_start(now_at: int, zone_name: str) -> datetime:
    """Today's midnight in the zone."""
    local = moment(now_at).astimezone(ZoneInfo(zone_name))
    return local.replace(hour=0, minute=0, second=0, microsecond=0)


def midnight(day: date, zone_name: str) -> int:
    """When the day begins in the zone, in ms. Raises `OverflowError` at the ends of what a clock can say."""
    return at(datetime.combine(day, time(), ZoneInfo(zone_name)))


def at(when: datetime) -> int:
    """Milliseconds since the epoch of a datetime with a zone."""
    return round(when.timestamp() * 1000)


def _plural(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"
