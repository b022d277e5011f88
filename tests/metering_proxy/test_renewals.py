"""What keeps a thousand leases alive holds no stream up."""

import asyncio
from collections import Counter

from infra.kit.db import Database
from metering_proxy.ledger.ledger import Hold, Ledger
from tests.metering_proxy.books import ask, end, hold_of, value
from tests.waiting import until

_CALLS = 40


async def _turns(counted: list[int]) -> None:
    while True:
        counted[0] += 1
        await asyncio.sleep(0)


async def _written(db: Database) -> bool:
    return await value(db, "SELECT count(*) FROM reservation WHERE output_seen = 7") == _CALLS


async def test_streams_have_their_turn_between_one_call_and_the_next_when_all_are_renewed(
    clocked: tuple[Database, Ledger],
) -> None:
    db, _ = clocked
    ledger = Ledger(db, lease_s=0.3)
    ledger.start()
    turn, read_in = [0], Counter[int]()

    def look() -> int:
        read_in[turn[0]] += 1
        return 7

    holds = [await hold_of(ledger, ask("a")) for _ in range(_CALLS)]
    for hold in holds:
        hold.look = look
    turns = asyncio.create_task(_turns(turn))
    await until(lambda: _written(db))
    turns.cancel()
    assert max(read_in.values()) == 1
    for hold in holds:
        hold.look = None
        await ledger.settle(end(hold))
    await ledger.close()


async def test_no_stream_is_read_when_others_are_swept(clocked: tuple[Database, Ledger]) -> None:
    _, ledger = clocked
    hold: Hold = await hold_of(ledger, ask("a"))
    hold.look = lambda: 1 // 0
    await ledger.sweep()
    hold.look = None
    assert await ledger.settle(end(hold))
