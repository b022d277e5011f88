"""The whole matrix of leaving and dying (`make soak`): after every byte, at any moment, one ending each."""

import time
from pathlib import Path

import pytest

from infra.kit.clock import FakeClock
from infra.kit.db import Database, sql
from metering_proxy.ledger.verify import verify
from tests import scripted as s
from tests.metering_proxy.house import a_house
from tests.metering_proxy.test_survival import Place, a_call, held
from tests.scripted import ScriptedProvider
from tests.waiting import until

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]
_PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}
_BODY = {
    "model": "default",
    "stream": True,
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "hi"}],
}


@pytest.mark.parametrize("wire", _PATHS)
async def test_caller_may_leave_after_any_byte(
    tmp_path: Path, scripted: ScriptedProvider, clock: FakeClock, wire: str
) -> None:
    scripted.always(reply=s.text("Grüße ", "日本語 ", "end").using(20, 33))
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/m.db", clock=clock) as house:
        await house.connect(scripted, f"{wire}_compatible")
        tenant = await house.tenant("plus")
        whole = len((await tenant.post(_PATHS[wire], _BODY)).body)
        for leave_after in range(whole):
            clock.advance(2)
            response = await tenant.session.post(
                f"http://localhost{_PATHS[wire]}",
                json=_BODY,
                headers={"authorization": f"Bearer {tenant.key}"},
            )
            if leave_after:
                await response.content.readexactly(leave_after)
            response.close()
        entries = await house.entries(tenant, whole + 1)
        assert {(e["output_tokens"], e["estimated"]) for e in entries} == {(33, 0)}
        assert (await house.verdict()).whole


@pytest.mark.parametrize("words", range(20))
async def test_meter_may_be_killed_at_any_moment(
    tmp_path: Path, scripted: ScriptedProvider, words: int
) -> None:
    place = Place(tmp_path, f"sqlite:///{tmp_path}/m.db")
    assert await place.run("migrate") == 0
    gate = s.Gate()
    scripted.always(reply=s.text(*("word " for _ in range(words)), gate, "never read"))
    db = Database(place.database_url)
    async with place.meter() as meter:
        _, session, headers = await a_call(meter, place, scripted)
        async with session:
            asking = session.post(
                "http://localhost/v1/chat/completions", json=_BODY, headers=headers
            )
            response = await asking
            await gate.reached()
            await meter.kill()
            response.close()
    gate.open()

    async def expired() -> bool:
        async with db.read() as reading:
            until_at = await reading.value(sql("SELECT MAX(lease_until_at) FROM reservation"))
        return int(until_at) < time.time() * 1000

    await until(expired, what="the end of the lease")
    async with place.meter():
        assert await held(db) == 0
    async with db.read() as reading:
        states = await reading.rows(sql("SELECT state FROM reservation"))
        entries = await reading.value(sql("SELECT count(*) FROM entry"))
    assert [row["state"] for row in states] == ["charged_estimate"]
    assert entries == 1
    assert (await verify(db)).whole
    await db.close()
