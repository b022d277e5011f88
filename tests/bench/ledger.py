"""The ledger by itself: `make bench-ledger`, or `python -m tests.bench.ledger --rounds 1 --seconds 1`.

Pairs of a durable hold and a durable settlement a second, by 1, 16 and 64 callers of as many accounts: through
the writer, which commits together whatever waits, and with a transaction for each operation. Nothing else
differs. As in the meter nobody waits for a settlement before the next hold, but every one is durable in the end.
On SQLite, and on a PostgreSQL of its own that syncs every commit.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import uvloop

from infra.kit import migrate
from infra.kit.db import Database
from metering_proxy.ledger.ledger import Hold, Ledger
from metering_proxy.ledger.opening import store
from metering_proxy.ledger.ops import Op, Refused
from metering_proxy.ledger.stores import Store
from metering_proxy.ledger.verify import verify
from metering_proxy.ledger.writer import Writer
from tests import postgres
from tests.bench import report
from tests.bench.report import Rounds, Row
from tests.metering_proxy.books import ask, end

_CALLERS = (1, 16, 64)
GROUP, SINGLE = "group", "single"


class OneEach(Writer):
    """A writer that commits every operation by itself, in as many transactions at once as a pool would have."""

    def __init__(self, stores: Sequence[Store]) -> None:
        super().__init__(stores[0])
        self._stores = stores
        self._free: asyncio.Queue[Store] = asyncio.Queue()
        for one in stores:
            self._free.put_nowait(one)

    def start(self) -> None:
        """Nothing runs beside the callers."""

    def submit(self, op: Op) -> "asyncio.Future[object]":
        """Commits `op` in its caller's time."""
        return asyncio.ensure_future(self._alone(op))

    async def _alone(self, op: Op) -> object:
        books = await self._free.get()
        try:
            [answer] = await books.apply([op])
        finally:
            self._free.put_nowait(books)
        return answer

    async def close(self, timeout_s: float = 10.0) -> None:
        """Closes every store."""
        for one in self._stores:
            await one.close()


@asynccontextmanager
async def ledger(db: Database, how: str) -> AsyncIterator[Ledger]:
    """A ledger that commits in one of the two ways."""
    # SQLite has one writer; a pool of eight is what a service has on PostgreSQL.
    many = 1 if how == GROUP or db.is_sqlite else 8
    books = [store(db, worker="bench", lease_s=60, clock=None) for _ in range(many)]
    writer = Writer(books[0]) if how == GROUP else OneEach(books)
    made = Ledger(db, writer=writer)
    made.start()
    yield made
    await made.close()


async def pairs(db: Database, how: str, callers: int, seconds: float) -> tuple[float, float, float]:
    """Pairs a second, and the median and the 99th percentile of a hold's milliseconds."""
    took: list[float] = []
    async with ledger(db, how) as books:
        until = time.perf_counter() + seconds
        began = time.perf_counter()
        await asyncio.gather(*(_caller(books, f"{how}-{n}", until, took) for n in range(callers)))
        passed = time.perf_counter() - began
    took.sort()
    at = [took[int(len(took) * share)] * 1000 for share in (0.5, 0.99)]
    return len(took) / passed, at[0], at[1]


async def _caller(books: Ledger, account: str, until: float, took: list[float]) -> None:
    settling: asyncio.Future[bool] | None = None
    while time.perf_counter() < until:
        op = ask(account, limit=10**17)
        windows = tuple(replace(window, limit=10**17) for window in op.windows)
        began = time.perf_counter()
        hold = await books.reserve(replace(op, windows=windows))
        took.append(time.perf_counter() - began)
        assert isinstance(hold, Hold), hold if isinstance(hold, Refused) else "no hold"
        if settling is not None:
            assert await settling
        settling = books.settle(end(hold))
    if settling is not None:
        assert await settling


async def measure(urls: dict[str, str], rounds: int, seconds: float) -> Rounds:
    """All of it, rounds interleaved, and a proof at the end that every sum is right."""
    found = Rounds()
    for name, url in urls.items():
        db = Database(url, durable=True)
        await migrate.upgrade(db, "metering_proxy")
        for _ in range(rounds):
            for callers in _CALLERS:
                for how in (GROUP, SINGLE):
                    rate, p50, p99 = await pairs(db, how, callers, seconds)
                    target = f"{name} {how}"
                    found.add(target, f"pairs/s c={callers}", rate)
                    found.add(target, f"p50_ms c={callers}", p50)
                    found.add(target, f"p99_ms c={callers}", p99)
        assert (await verify(db)).whole, "the ledger does not agree with itself"
        await db.close()
    return found


def rows(found: Rounds, names: list[str]) -> Iterator[Row]:
    """Row meter 9 of the house's targets."""
    for name in names:
        gain = found.ratio("pairs/s c=64", f"{name} {GROUP}", f"{name} {SINGLE}")
        yield Row("meter 9", f"{name}: pairs a second at 64 callers, of one each", 5.0, gain)


def main() -> None:
    """Measures, prints the table, and one JSON object as the last line."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--seconds", type=float, default=1.5)
    args = asked.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}")
    absent = {}
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        urls = {"sqlite": f"sqlite:///{Path(temporary)}/ledger.db"}
        bin_dir = postgres.binaries()
        if bin_dir is None:
            absent["postgres"] = "PostgreSQL is not installed: apt-get install postgresql"
        else:
            admin_url, _ = stack.enter_context(postgres.server(bin_dir))
            urls["postgres"] = stack.enter_context(postgres.fresh_database(bin_dir, admin_url))
        found = uvloop.run(measure(urls, args.rounds, args.seconds))
    told = [f"{name} {how}" for name in urls for how in (GROUP, SINGLE)]
    measures = [f"{m} c={c}" for c in _CALLERS for m in ("pairs/s", "p50_ms", "p99_ms")]
    print(f"\n{found.table(told, measures)}\n")
    for name, why in absent.items():
        print(f"{name} is missing: {why}")
    verdicts = list(rows(found, list(urls)))
    for row in verdicts:
        print(row)
    print(report.last_line("ledger", verdicts, medians=found.medians(told), absent=absent))


if __name__ == "__main__":
    main()
