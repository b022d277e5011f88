"""The relay beside its peers: `make bench-relay`, or `python -m tests.bench.relay --rounds 1 --seconds 1`.

Load and upstream on one core, the proxy under test on another, all targets up at once, rounds
interleaved. The upstream is a unix socket; the client side is TCP on loopback, as wrk wants it.
"""

import argparse
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from sys import executable

from infra.kit.service import raise_file_limit
from tests.bench import idle, load, report, streams, targets
from tests.bench.processes import Cores, cores, cpu_s, free_port, rss_mb, running, wait_until_idle
from tests.bench.report import Rounds, Row
from tests.bench.targets import Target

_CONNECTIONS = (1, 16, 64)
_STREAMS = 1000
_HEADERS = {"authorization": f"Bearer {targets.TOKEN}"}
OURS, SLOWER, NGINX = "alcove protocol", "alcove aiohttp", "nginx"
Start = Callable[[], AbstractContextManager[Target]]


@contextmanager
def upstream(directory: Path, core: int) -> Iterator[tuple[str, str]]:
    """The fake upstream: its unix address and its TCP address."""
    unix, tcp = f"unix://{directory}/up.sock", f"http://127.0.0.1:{free_port()}"
    command = [executable, "-m", "tests.bench.fake_upstream", unix, tcp]
    with running(command, core=core, answers_at=tcp, log=directory / "upstream.log"):
        yield unix, tcp


def peers(directory: Path, unix: str, tcp: str, core: int) -> dict[str, Start]:
    """How each proxy is started."""
    return {
        NGINX: partial(targets.nginx, directory, unix, core),
        "chp": partial(targets.configurable_http_proxy, directory, unix, core),
        "chp tcp": partial(targets.configurable_http_proxy, directory, tcp, core),
        OURS: partial(targets.ours, directory, unix, core, "protocol"),
        SLOWER: partial(targets.ours, directory, unix, core, "aiohttp"),
    }


def plain(
    up: Sequence[Target], where: Cores, found: Rounds, rounds: int, seconds: int
) -> dict[str, int]:
    """Row 1: plain calls. Gives how many failed, by target: a proxy that fails is fast and worth nothing."""
    failed: Counter[str] = Counter()
    for _ in range(rounds):
        for connections in _CONNECTIONS:
            for target in up:
                got = load.calls(
                    f"{target.url}/",
                    core=where.load,
                    connections=connections,
                    seconds=seconds,
                    pid=target.pid,
                    headers=_HEADERS,
                )
                for measure in ("rps", "p50_ms", "p99_ms", "cpu_us"):
                    found.add(target.name, f"{measure} c={connections}", getattr(got, measure))
                if got.failed:
                    failed[target.name] += got.failed
                if target.pid is not None:
                    wait_until_idle(target.pid)
    return dict(failed)


def memory(start: dict[str, Start], found: Rounds, rounds: int) -> None:
    """Row 2: what 1,000 idle event streams weigh in a fresh process."""
    for _ in range(rounds):
        for begin in start.values():
            with begin() as target:
                assert target.pid is not None
                before = rss_mb(target.pid)
                with idle.streams(target.url, _STREAMS, _HEADERS):
                    found.add(target.name, "idle MB", rss_mb(target.pid) - before)
                    found.add(target.name, "RSS MB", rss_mb(target.pid))


def ticking(up: Sequence[Target], where: Cores, found: Rounds, rounds: int, events: int) -> None:
    """Row 3: 1,000 streams of 20 events a second."""
    for _ in range(rounds):
        for target in up:
            before = cpu_s(target.pid) if target.pid else 0.0
            got = streams.delays(
                target.url, core=where.load, count=_STREAMS, events=events, headers=_HEADERS
            )
            used = cpu_s(target.pid) - before if target.pid else 0.0
            found.add(target.name, "event p50_ms", got.p50_ms)
            found.add(target.name, "event p99_ms", got.p99_ms)
            found.add(target.name, "event cpu_us", used / (_STREAMS * events) * 1e6)
            found.add(target.name, "lost", got.lost)
            found.add(target.name, "unfinished", got.unfinished)
            if target.pid is not None:
                wait_until_idle(target.pid)


def rows(found: Rounds) -> list[Row]:
    """The rows relay 1, 2 and 3 of the house's targets."""
    delay, base = found.median(OURS, "event p99_ms"), found.median("direct", "event p99_ms")
    added = None if delay is None or base is None else delay - base
    return [
        Row("relay 1", "rps c=16, of chp", 4.0, found.ratio("rps c=16", OURS, "chp")),
        # Its faster way, which an agent without a network cannot offer: the floor of the row holds there.
        Row("relay 1", "rps c=16, of chp over TCP", 1.8, found.ratio("rps c=16", OURS, "chp tcp")),
        Row("relay 1", "rps c=16, of nginx", 0.4, found.ratio("rps c=16", OURS, NGINX)),
        Row(
            "relay 2",
            "1,000 idle streams, MB of nginx's",
            1.0,
            found.ratio("idle MB", OURS, NGINX),
            True,
        ),
        Row("relay 3", "1,000 streams, added p99, ms", 25.0, added, True),
        Row("relay 3", "1,000 streams, lost events", 0.0, found.median(OURS, "lost"), True),
    ]


def main() -> None:
    """Measures, prints the tables, and one JSON object as the last line."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--seconds", type=int, default=2)
    asked.add_argument("--events", type=int, default=100, help="per stream, 20 a second")
    args = asked.parse_args()
    raise_file_limit()
    where, found, absent = cores(), Rounds(), {}
    print(f"cores: proxy {where.proxy}, load {where.load}; load average {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        directory = Path(temporary)
        unix, tcp = stack.enter_context(upstream(directory, where.load))
        start = peers(directory, unix, tcp, where.proxy)
        for name in list(start):
            try:
                with start[name]():
                    pass
            except targets.Absent as error:
                absent[name] = str(error)
                del start[name]
        memory({n: s for n, s in start.items() if n != "chp tcp"}, found, args.rounds)
        up = [Target("direct", tcp, None)]
        up += [stack.enter_context(begin()) for begin in start.values()]
        # Slow peers last, so that they take nothing from whoever is measured after them.
        up.sort(key=lambda target: target.name.startswith("chp"))
        ticking([t for t in up if t.name != "chp tcp"], where, found, args.rounds, args.events)
        failed = plain(up, where, found, args.rounds, args.seconds)
    told = [target.name for target in up]
    for measures in (
        *([f"{m} c={c}" for m in ("rps", "p50_ms", "p99_ms", "cpu_us")] for c in _CONNECTIONS),
        ["idle MB", "RSS MB", "event p50_ms", "event p99_ms", "event cpu_us", "lost", "unfinished"],
    ):
        print(f"\n{found.table(told, measures)}")
    print()
    if failed:
        print(f"FAILED CALLS, so these figures are worth nothing: {failed}")
    for name, why in absent.items():
        print(f"{name} is missing: {why}")
    verdicts = rows(found)
    for row in verdicts:
        print(row)
    print(
        report.last_line(
            "relay", verdicts, failed=failed, medians=found.medians(told), absent=absent
        )
    )


if __name__ == "__main__":
    main()
