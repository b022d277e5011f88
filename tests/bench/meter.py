"""The meter beside its peers: `make bench-meter`, or `python -m tests.bench.meter --rounds 1 --seconds 1`.

The same load for all: a request of 1.5 KB, answered whole or by a stream of 100 events, at 1 and at 64
connections; then slow streams of 20 events a second. Ours counts every limit and commits every hold and
every entry durably, on SQLite and on PostgreSQL; LiteLLM and Portkey keep no ledger here, nginx none at all. Load
and upstream on one core, the proxy under test (and PostgreSQL) on another, rounds interleaved.
"""

import argparse
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from infra.kit.service import raise_file_limit
from tests.bench import disk, load, meter_rows, meter_targets, openai_answers, report, streams
from tests.bench.meter_targets import PATH, MeterTarget
from tests.bench.processes import Cores, cores, cpu_s, rss_mb, wait_until_idle
from tests.bench.report import Rounds

CONNECTIONS = (1, 64)
_KINDS = {"plain": False, "stream": True}


@dataclass
class Bench:
    """One run: who is compared, where, and what came of it."""

    up: Sequence[MeterTarget]
    where: Cores
    directory: Path
    found: Rounds = field(default_factory=Rounds)
    failed: Counter[str] = field(default_factory=Counter)

    def fast(self, seconds: int) -> None:
        """One round of plain answers and of streams."""
        for kind, stream in _KINDS.items():
            for connections in CONNECTIONS:
                for target in self.up:
                    self._load(target, kind, stream, connections, seconds)

    def _load(
        self, target: MeterTarget, kind: str, stream: bool, connections: int, seconds: int
    ) -> None:
        script = self._script(target, stream)
        before = target.ledger_cpu_s()
        got = load.calls(
            target.url + PATH,
            core=self.where.load,
            connections=connections,
            seconds=seconds,
            pid=target.pid,
            script=str(script),
        )
        told = f"{kind} {{}} c={connections}".format
        for measure in ("rps", "p50_ms", "p99_ms"):
            self.found.add(target.name, told(measure), getattr(got, measure))
        if target.pid is not None:
            self.found.add(target.name, told("cpu_s/1000"), got.cpu_us / 1000)
            if target.database_pid is not None:
                used = (target.ledger_cpu_s() - before) / (got.rps * seconds) * 1000
                self.found.add(target.name, told("db cpu_s/1000"), used)
            self.found.add(target.name, "RSS MB", rss_mb(target.pid))
            wait_until_idle(target.pid)
        if got.failed:
            self.failed[target.name] += got.failed

    def _script(self, target: MeterTarget, stream: bool) -> Path:
        """What wrk sends, as the Lua that it wants."""
        path = self.directory / f"{target.name.replace(' ', '-')}-{stream:d}.lua"
        if not path.exists():
            body = openai_answers.request(stream=stream).decode()
            said = {"content-type": "application/json", **target.headers}
            lines = [f"wrk.headers[{name!r}] = {value!r}" for name, value in said.items()]
            path.write_text("\n".join(['wrk.method = "POST"', f"wrk.body = {body!r}", *lines]))
        return path

    def slow(self, count: int, events: int) -> None:
        """One round of `count` streams at once, of 20 events a second each."""
        body = openai_answers.request(stream=True, slow_events=events)
        for target in self.up:
            if not target.fast:
                continue
            before = cpu_s(target.pid) if target.pid else 0.0
            got = streams.delays(
                target.url,
                core=self.where.load,
                count=count,
                events=events,
                headers=target.headers,
                path=PATH,
                body=body,
            )
            used = cpu_s(target.pid) - before if target.pid else 0.0
            told = f"{count} slow {{}}".format
            self.found.add(target.name, told("p50_ms"), got.p50_ms)
            self.found.add(target.name, told("p99_ms"), got.p99_ms)
            self.found.add(target.name, told("lost"), got.lost)
            self.found.add(target.name, told("unfinished"), got.unfinished)
            if target.pid is not None:
                self.found.add(target.name, told("cpu_us"), used / (count * events) * 1e6)
                self.found.add(target.name, told("core"), used / (events / 20))
                self.found.add(target.name, told("RSS MB"), rss_mb(target.pid))
                wait_until_idle(target.pid)


def tables(found: Rounds, told: Sequence[str]) -> str:
    """Every measure, a table for each kind of load."""
    parts = []
    for kind in _KINDS:
        for c in CONNECTIONS:
            names = ("rps", "p50_ms", "p99_ms", "cpu_s/1000", "db cpu_s/1000")
            parts.append(found.table(told, [f"{kind} {name} c={c}" for name in names]))
    for count in (500, 1000):
        names = ("p50_ms", "p99_ms", "cpu_us", "core", "RSS MB", "lost", "unfinished")
        parts.append(found.table(told, [f"{count} slow {name}" for name in names]))
    parts.append(found.table(told, ["idle MB", "RSS MB"]))
    return "\n\n".join([*parts, found.table([meter_rows.DISK], ["sync ms"])])


def main() -> None:
    """Measures, prints the tables, and one JSON object as the last line."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--seconds", type=int, default=2)
    asked.add_argument(
        "--events", type=int, default=60, help="each of 500 slow streams, 20 a second"
    )
    # 25 s: long enough that every lease is renewed meanwhile, which once held all events up.
    asked.add_argument("--long", type=int, default=500, help="events of each of 1,000; 0: none")
    asked.add_argument("--only", default="", help="names of targets, with commas between them")
    args = asked.parse_args()
    raise_file_limit()
    where = cores()
    print(f"cores: proxy {where.proxy}, load {where.load}; load average {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        directory = Path(temporary)
        only = [name.strip() for name in args.only.split(",") if name.strip()]
        up, absent = meter_targets.start(stack, directory, where, only)
        bench = Bench(up, where, directory)
        for target in up:
            if target.pid is not None:
                bench.found.add(target.name, "idle MB", rss_mb(target.pid))
        for _ in range(args.rounds):
            bench.found.add(meter_rows.DISK, "sync ms", disk.sync_ms(directory))
            bench.fast(args.seconds)
            for count, events in ((500, args.events), (1000, args.long)):
                if events:
                    bench.slow(count, events)
    told = [target.name for target in up]
    print(f"\n{tables(bench.found, told)}\n")
    if bench.failed:
        print(f"FAILED CALLS, so these figures are worth nothing: {dict(bench.failed)}")
    for name, why in absent.items():
        print(f"{name} is missing: {why}")
    verdicts = meter_rows.rows(bench.found)
    for row in verdicts:
        print(row)
    print(
        report.last_line(
            "meter",
            verdicts,
            failed=dict(bench.failed),
            medians=bench.found.medians(told),
            absent=absent,
        )
    )


if __name__ == "__main__":
    main()
