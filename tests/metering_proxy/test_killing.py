"""A meter that is killed while calls are at every stage, again and again: its successors make the books whole.

Twenty points of the way of five calls at once, twenty runs of each (`make soak`); `make test` draws three of the
four hundred by the day.
"""

import asyncio
import random
import time
from collections import Counter
from pathlib import Path

import aiohttp
import pytest

from infra.kit import client as kit_client
from infra.kit import ids
from infra.kit.db import Database, sql
from metering_proxy import wire
from metering_proxy.ledger.verify import verify
from tests import draws
from tests import scripted as s
from tests.metering_proxy.house import ROW
from tests.metering_proxy.test_survival import Place, Process, held
from tests.scripted import ScriptedProvider
from tests.waiting import until

_POINTS, _RUNS, _CALLS, _WORDS = 20, 20, 5, 14
_CHUNKS_A_POINT = _CALLS * _WORDS / _POINTS
_URL = "http://localhost/v1/chat/completions"
_ENDINGS = {"settled", "released", "charged_estimate"}
# The provider takes its time, so that the calls of a run are apart from each other.
_REPLY = s.text(*(part for n in range(_WORDS) for part in (f"word{n} ", s.Delay(0.002))))


class Seen:
    """How many pieces of answers have come back, and an alarm at one of them."""

    def __init__(self, alarm_at: float) -> None:
        self._count, self._alarm_at = 0, alarm_at
        self.alarm = asyncio.Event()

    def more(self, pieces: int = 1) -> None:
        """So many have come."""
        self._count += pieces
        if self._count >= self._alarm_at:
            self.alarm.set()


async def _call(session: aiohttp.ClientSession, key: str, stream: bool, seen: Seen) -> None:
    """One call, to whatever end it comes."""
    body = {
        "model": "default",
        "stream": stream,
        "max_tokens": 200,
        "messages": [{"role": "user", "content": "hi"}],
    }
    seen.more(0)
    try:
        shown = {"authorization": f"Bearer {key}"}
        async with session.post(_URL, json=body, headers=shown) as response:
            async for _ in response.content.iter_any():
                seen.more()
    except aiohttp.ClientError:
        pass
    else:
        seen.more(_WORDS)


async def _killed_at(meter: Process, place: Place, point: int, chance: random.Random) -> None:
    """A new tenant's calls, and the end of the meter somewhere within that point of their way."""
    tenant = ids.tenant_id()
    state = wire.TenantState(plan="plus", status="active", version=1)
    await meter.client.put_tenant(tenant, state)
    directory = place.root / "s" / "t" / tenant / "1" / "meter"
    directory.mkdir(parents=True)
    key = (await meter.client.mint_key(tenant, 1, str(directory))).key
    session, _ = kit_client.session(f"unix://{directory}/meter.sock")
    seen = Seen(point * _CHUNKS_A_POINT)
    async with session:
        calls = [
            asyncio.create_task(_call(session, key, n < _CALLS - 1, seen)) for n in range(_CALLS)
        ]
        ended = asyncio.gather(*calls)
        alarm = asyncio.create_task(seen.alarm.wait())
        await asyncio.wait([ended, alarm], return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(chance.random() * 0.01)  # no waiting: any moment will do
        await meter.kill()
        alarm.cancel()
        await ended


async def _expired(db: Database) -> bool:
    async with db.read() as reading:
        last = await reading.value(
            sql("SELECT MAX(lease_until_at) FROM reservation WHERE state = 'dispatched'")
        )
    return last is None or int(last) < time.time() * 1000


async def _check(db: Database) -> Counter[str]:
    """Every request in one ending, with the entries of that ending, and every sum right; how they ended."""
    assert await held(db) == 0
    assert (await verify(db)).whole
    async with db.read() as reading:
        rows = await reading.rows(
            sql(
                "SELECT r.state, COUNT(e.request_id) AS entries FROM reservation r"
                " LEFT JOIN entry e ON e.request_id = r.request_id AND e.kind = 'usage'"
                " GROUP BY r.request_id, r.state"
            )
        )
    for row in rows:
        assert row["state"] in _ENDINGS
        assert row["entries"] == (row["state"] != "released")
    return Counter(row["state"] for row in rows)


async def _chain(
    place: Place, scripted: ScriptedProvider, points: list[int], chance: random.Random
) -> Counter[str]:
    """One meter after another: each makes good what the one before left, and is killed in its turn."""
    assert await place.run("migrate") == 0
    scripted.always(reply=_REPLY)
    db = Database(place.database_url)
    for n, point in enumerate(points):
        await until(lambda: _expired(db), what="the end of the leases")
        async with place.meter() as meter:
            if n == 0:
                await meter.client.create_provider(
                    wire.NewProvider(
                        kind="openai_compatible", name="S", base_url=scripted.url, models=[ROW]
                    )
                )
            else:
                await _check(db)
            await _killed_at(meter, place, point, chance)
    await until(lambda: _expired(db), what="the end of the leases")
    async with place.meter():
        endings = await _check(db)
    await db.close()
    return endings


@pytest.mark.thorough
@pytest.mark.timeout(180)
async def test_books_are_whole_after_a_meter_was_killed(
    tmp_path: Path, database_url: str, scripted: ScriptedProvider
) -> None:
    chance = draws.chance("death of a meter")
    points = chance.sample(range(1, _POINTS), 3)
    endings = await _chain(Place(tmp_path, database_url), scripted, points, chance)
    assert endings.total() > 0


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("point", range(_POINTS))
async def test_books_are_whole_after_any_death(
    tmp_path: Path, database_url: str, scripted: ScriptedProvider, point: int
) -> None:
    endings = await _chain(
        Place(tmp_path, database_url), scripted, [point] * _RUNS, random.Random(point)
    )
    assert point in (0, _POINTS - 1) or endings["charged_estimate"] > 0
