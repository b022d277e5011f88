"""Golden streams: the same bytes to the caller, in the ledger what is in them, once, however cut or left."""

import asyncio
import hashlib
import json
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from infra.kit.clock import FakeClock, SystemClock
from metering_proxy.pricing import Usage
from metering_proxy.providers.kinds import kinds
from metering_proxy.tenant_side.tee import Tee, framing_of
from metering_proxy.wires.wire import Found
from tests import draws, tally
from tests.metering_proxy.goldens import ASKED, GOLDENS, Golden
from tests.metering_proxy.house import House, Tenant, a_house
from tests.scripted import ScriptedProvider

_ALL = [pytest.param(golden, id=golden.name) for golden in GOLDENS]
_PLAIN = (None, "default", "standard")
_LEAVERS = 16  # at once


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read(golden: Golden, cuts: list[int]) -> tuple[bytes, Found]:
    """What the tee passes on and finds when the stream comes in those pieces."""
    dialect = kinds()[golden.kind].dialect
    reader = golden.reads.reader(None, dialect)
    framing = framing_of(golden.content_type, array=golden.wire == "gemini_array")
    tee = Tee(reader, framing=framing, encoding="", strip=False)
    at, out = 0, b""
    for cut in [*cuts, len(golden.body)]:
        out += tee.feed(golden.body[at:cut])
        at = cut
    out += tee.end()
    tee.conclude()
    assert not tee.unread
    seen, found = tee.seen(), reader.found
    assert seen == _exactly(golden).output_estimate
    return out, found


def _exactly(golden: Golden) -> Found:
    """What a reader finds that is shown everything at once, and reads all of it."""
    reader = golden.reads.reader(None, kinds()[golden.kind].dialect)
    reader.telling = None
    framing = framing_of(golden.content_type, array=golden.wire == "gemini_array")
    tee = Tee(reader, framing=framing, encoding="", strip=False)
    tee.feed(golden.body)
    tee.end()
    return reader.found


def _same(found: Usage | None, golden: Golden) -> bool:
    assert found is not None
    tier = None if found.tier in _PLAIN else found.tier
    return replace(found, tier=tier) == golden.found


@pytest.mark.parametrize("golden", _ALL)
def test_stream_is_read_alike_when_it_is_cut_anywhere(golden: Golden) -> None:
    whole, expected = _read(golden, [])
    assert whole == golden.body
    if golden.usage is not None:
        assert _same(expected.usage, golden)
    by_bytes = list(range(1, len(golden.body)))[:20_000]
    for cuts in [by_bytes, *([cut] for cut in golden.cuts(60))]:
        out, found = _read(golden, cuts)
        assert (out, found) == (golden.body, expected)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("golden", _ALL)
def test_stream_is_read_alike_when_it_is_cut_at_every_byte(golden: Golden) -> None:
    _, expected = _read(golden, [])
    for cut in range(1, len(golden.body), 1 + len(golden.body) // 20_000):
        assert _read(golden, [cut]) == (golden.body, expected)
        tally.count("cuts")


async def _tenant_of(house: House, scripted: ScriptedProvider, golden: Golden) -> Tenant:
    await house.connect(scripted, golden.kind)
    return await house.tenant("free", charge_month_nanos=None)


@pytest.mark.thorough
@pytest.mark.parametrize("golden", _ALL)
async def test_stream_is_the_same_bytes_and_settled_once(
    house: House, scripted: ScriptedProvider, golden: Golden
) -> None:
    tenant = await _tenant_of(house, scripted, golden)
    scripted.then(reply=golden.reply)
    answer = await tenant.post(*ASKED[golden.wire])
    assert (answer.status, answer.cut) == (200, False)
    assert _sha(answer.body) == _sha(golden.body)
    [entry] = await house.entries(tenant)
    _holds(entry, golden)
    assert (await house.verdict()).whole


@pytest.mark.postgres
async def test_drawn_streams_are_settled_alike_on_postgres(
    tmp_path: Path, postgres_url: str, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    drawn = draws.chance("golden streams on PostgreSQL").sample(GOLDENS, 6)
    await _check_settled_alike(tmp_path, postgres_url, scripted, clock, drawn)


@pytest.mark.soak
async def test_every_stream_is_settled_alike_on_either_database(
    tmp_path: Path, database_url: str, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    await _check_settled_alike(tmp_path, database_url, scripted, clock, GOLDENS)


async def _check_settled_alike(
    root: Path, url: str, scripted: ScriptedProvider, clock: FakeClock, chosen: Iterable[Golden]
) -> None:
    """One meter, and each stream from a provider of its kind to a tenant of its own."""
    async with a_house(root, url, clock=clock) as house:
        for golden in chosen:
            clock.advance(200)  # so far apart that errors open no breaker
            connection = await house.connect(scripted, golden.kind)
            tenant = await house.tenant("free", charge_month_nanos=None)
            scripted.then(reply=golden.reply)
            answer = await tenant.post(*ASKED[golden.wire])
            assert _sha(answer.body) == _sha(golden.body), golden.name
            [entry] = await house.entries(tenant)
            _holds(entry, golden)
            await house.client.delete_provider(connection)
        assert (await house.verdict()).whole


def _holds(entry: dict[str, Any], golden: Golden) -> None:
    """The entry says what is in the stream."""
    parts = json.loads(entry["parts"])
    assert (entry["outcome"], entry["estimated"]) == (golden.outcome, int(golden.estimated))
    if golden.usage is not None:
        names = {field.name for field in fields(Usage)} - {"tier"}
        assert {k: v for k, v in parts.items() if k in names} == {
            k: v for k, v in golden.usage.items() if k != "tier"
        }
    else:
        assert entry["output_tokens"] > 0
    assert parts.get("doubt") in (golden.doubt, "stated_cost")
    if golden.cost_nanos is not None:
        assert (entry["cost_nanos"], parts["stated"]) == (golden.cost_nanos, 1)


async def _left(tenant: Tenant, golden: Golden, after: int) -> None:
    """Asks, reads so many bytes, and leaves."""
    path, body = ASKED[golden.wire]
    shown = {"authorization": f"Bearer {tenant.key}"}
    response = await tenant.session.post(f"http://localhost{path}", json=body, headers=shown)
    if after:
        await response.content.readexactly(after)
    response.close()


@pytest.mark.thorough
@pytest.mark.parametrize("golden", _ALL)
async def test_caller_who_leaves_pays_for_what_came(
    house: House, scripted: ScriptedProvider, golden: Golden
) -> None:
    tenant = await _tenant_of(house, scripted, golden)
    scripted.always(reply=golden.reply)
    cuts = golden.cuts(3)
    for after in cuts:
        await _left(tenant, golden, after)
        entries = await house.entries(tenant, cuts.index(after) + 1)
        _holds({**entries[-1], "outcome": golden.outcome}, golden)
    assert (await house.verdict()).whole


class _Forgiving(SystemClock):
    """A clock by which failures are so far apart that they open no breaker."""

    _leaps = 0

    def monotonic_s(self) -> float:
        self._leaps += 1
        return self._leaps * 200.0


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("golden", _ALL)
async def test_caller_may_leave_after_every_byte(
    tmp_path: Path, scripted: ScriptedProvider, golden: Golden
) -> None:
    scripted.always(reply=golden.reply)
    url = f"sqlite:///{tmp_path}/meter.db"
    async with a_house(tmp_path, url, clock=_Forgiving()) as house:
        await house.connect(scripted, golden.kind)
        lifted = dict.fromkeys(("charge_month_nanos", "requests_minute", "concurrent"))
        tenant = await house.tenant("plus", **lifted)
        afters = iter(range(len(golden.body)))

        async def leaver() -> None:
            for after in afters:
                await _left(tenant, golden, after)
                scripted.requests.clear()

        await asyncio.gather(*(leaver() for _ in range(_LEAVERS)))
        entries = await house.entries(tenant, len(golden.body))
        assert len({entry["request_id"] for entry in entries}) == len(golden.body)
        for entry in entries:
            _holds({**entry, "outcome": golden.outcome}, golden)
        assert {entry["outcome"] for entry in entries} <= {"left", "complete", golden.outcome}
        assert len({(entry["cost_nanos"], entry["charge_nanos"]) for entry in entries}) == 1
        assert (await house.verdict()).whole


def test_there_are_forty_streams_of_every_wire_and_kind() -> None:
    assert len(GOLDENS) >= 40
    assert {golden.wire for golden in GOLDENS} == ASKED.keys()
    built_in = {"local", "local-embeddings"}
    assert {golden.kind for golden in GOLDENS} == kinds().keys() - built_in
