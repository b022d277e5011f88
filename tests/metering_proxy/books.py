"""A ledger by itself: what the tests of holds and of recovery stand on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from infra.kit import ids
from infra.kit.clock import Clock
from infra.kit.db import Database, sql
from metering_proxy.bounds import Bound
from metering_proxy.ledger.ledger import Hold, Ledger
from metering_proxy.ledger.ops import Reserve, Settle, Swept, Target, Window
from metering_proxy.pricing import Usage

MONTH = 1_767_225_600_000
END = MONTH + 31 * 86_400_000


def ask(account: str, *, limit: int = 10**9, wanted: int = 1_000, concurrent: int = 100) -> Reserve:
    """A request of 100 input tokens at 1,000 and `wanted` output tokens at 2,000 nano-USD."""
    return Reserve(
        request_id=ids.ulid(),
        account=account,
        wire="openai_chat",
        target=Target("p", "p/m", "p/m@1", 30, 30_000, 2_000_000_000),
        payer="operator",
        started_at=MONTH + 5,
        month_start_at=MONTH,
        windows=(
            Window("charge_month", "charge", MONTH, END, limit),
            Window("requests_minute", "requests", MONTH, MONTH + 60_000, 1_000),
            Window("tokens_day", "tokens", MONTH, MONTH + 86_400_000, 10**9),
        ),
        concurrent=concurrent,
        bound=Bound(100, 100_000, 2_000, 1, 0),
        wanted=wanted,
        floor=256,
        markup_ppm=0,
    )


def end(hold: Hold, output: int = 10) -> Settle:
    charge = 50 * 1_000 + output * 2_000
    return Settle(
        hold.request_id, Usage(input=50, output=output), charge, charge, "complete", False
    )


async def hold_of(ledger: Ledger, op: Reserve) -> Hold:
    hold = await ledger.reserve(op)
    assert isinstance(hold, Hold)
    return hold


@asynccontextmanager
async def neighbour(db: Database, clock: Clock | None) -> AsyncIterator[Ledger]:
    """Another process's ledger, which knows of no call of ours that it lives."""
    other = Ledger(db, lease_s=60, clock=clock)
    other.start()
    try:
        yield other
    finally:
        await other.close()


async def swept_by_another(db: Database, clock: Clock) -> Swept:
    """What another process sweeps that has only begun."""
    async with neighbour(db, clock) as other:
        return await other.sweep()


async def windows(db: Database) -> dict[str, tuple[int, int]]:
    async with db.read() as reading:
        rows = await reading.rows(sql("SELECT kind, spent, held FROM account_window"))
    return {row["kind"]: (row["spent"], row["held"]) for row in rows}


async def value(db: Database, statement: str) -> object:
    async with db.read() as reading:
        return await reading.value(sql(statement))
