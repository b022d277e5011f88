"""The rows meter 1 to 8 of the house's targets, from what a run found. Row 9 is `bench-ledger`'s."""

from collections.abc import Iterator

from tests.bench.meter_targets import DIRECT, LITELLM, NGINX, PORTKEY, POSTGRES, SQLITE
from tests.bench.report import Rounds, Row

# Whose figure "sync ms" is: nobody's but the disk's.
DISK = "disk"


def rows(found: Rounds) -> list[Row]:
    """What was reached of each target, on both databases."""
    return [row for ours in (SQLITE, POSTGRES) for row in _of(found, ours)]


def _of(found: Rounds, ours: str) -> Iterator[Row]:
    on = ours.removeprefix("alcove ")

    def ratio(measure: str, over: str) -> float | None:
        return found.ratio(measure, ours, over)

    def added(measure: str, base: str) -> float | None:
        mine, theirs = found.median(ours, measure), found.median(base, measure)
        return None if mine is None or theirs is None else mine - theirs

    plain, streams = "plain rps c=64", "stream rps c=64"
    yield Row("meter 1", f"{on}: plain rps c=64, of nginx", 0.20, ratio(plain, NGINX))
    cpu = ratio("plain cpu_s/1000 c=64", NGINX)
    yield Row("meter 2", f"{on}: CPU a request, of nginx", 5.0, cpu, at_most=True)
    yield Row("meter 3", f"{on}: plain rps c=64, of LiteLLM", 60, ratio(plain, LITELLM))
    yield Row("meter 3", f"{on}: plain rps c=64, of Portkey", 20, ratio(plain, PORTKEY))
    p50 = added("plain p50_ms c=1", DIRECT)
    sync = found.median(DISK, "sync ms") or 0.0
    told = f"{on}: added p50 at one connection, ms (0.6 and an fdatasync)"
    yield Row("meter 4", told, 0.6 + sync, p50, at_most=True)
    late = added("500 slow p99_ms", NGINX)
    yield Row("meter 5", f"{on}: 500 streams, p99 over nginx's, ms", 5, late, at_most=True)
    event = ratio("500 slow cpu_us", NGINX)
    yield Row("meter 5", f"{on}: 500 streams, CPU an event, of nginx", 2, event, at_most=True)
    for name, most in (("unfinished", 0.0), ("core", 0.6), ("RSS MB", 60.0)):
        value = found.median(ours, f"1000 slow {name}")
        yield Row("meter 6", f"{on}: 1,000 streams, {name}", most, value, at_most=True)
    yield Row("meter 7", f"{on}: 100-event streams a second, of nginx", 0.7, ratio(streams, NGINX))
    idle = found.median(ours, "idle MB")
    yield Row("meter 8", f"{on}: RSS idle, MB", 60, idle, at_most=True)
