"""A provider that fails before it has said anything: the next one answers, under one request id and one hold."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from infra.kit.clock import FakeClock
from infra.kit.errors import AlcoveError
from infra.kit.relay import Timeouts
from metering_proxy import wire
from tests import scripted as s
from tests.metering_proxy.house import MODEL, ROW, House, Tenant, a_house
from tests.scripted import Reply, ScriptedProvider, serve
from tests.waiting import until

pytestmark = pytest.mark.thorough

_TELL = {"stream": True, "stream_options": {"include_usage": True}}


@dataclass
class Pair:
    """A tenant whose model `first/…` is answered by `second/…` when the first one fails."""

    house: House
    tenant: Tenant
    first: ScriptedProvider
    second: ScriptedProvider

    async def entries(self, count: int) -> list[dict[str, Any]]:
        """The attempts in their order, once nothing is held."""

        async def found() -> list[dict[str, Any]]:
            rows = await self.house.rows("SELECT * FROM entry ORDER BY started_at, attempt, kind")
            done = len(rows) >= count and not await self.house.held(self.tenant)
            return rows if done else []

        rows = await until(found, what=f"{count} entries")
        assert len(rows) == count
        assert (await self.house.verdict()).whole
        return rows


async def _connect(house: House, name: str, url: str, row: wire.ModelRow = ROW) -> None:
    new = wire.NewProvider(
        kind="openai_compatible", name=name, base_url=url, key=f"sk-{name}-key", models=[row]
    )
    assert (await house.client.create_provider(new)).id == name


@pytest.fixture
async def pair(tmp_path: Path, scripted: ScriptedProvider, clock: FakeClock) -> AsyncIterator[Pair]:
    """Two providers in a chain, the second one dearer."""
    timeouts = Timeouts(connect_s=2, first_byte_s=5, idle_s=0.3)
    async with (
        serve(ScriptedProvider()) as second,
        a_house(tmp_path, f"sqlite:///{tmp_path}/m.db", clock=clock, timeouts=timeouts) as house,
    ):
        await _connect(house, "first", scripted.url)
        dear = ROW.model_copy(update={"input_nanos": 3 * ROW.input_nanos})
        await _connect(house, "second", second.url, dear)
        await house.client.put_fallback(f"first/{MODEL}", [f"second/{MODEL}"])
        yield Pair(house, await house.tenant("plus"), scripted, second)
        second.verify()


def _ids(rows: list[dict[str, Any]]) -> list[tuple[int, str, str, str]]:
    return [(row["attempt"], row["kind"], row["provider"], row["outcome"]) for row in rows]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", [429, 500, 503, 529])
async def test_next_provider_answers_when_the_first_is_overloaded(
    pair: Pair, status: int, stream: bool
) -> None:
    pair.first.then(reply=s.error(status, retry_after="30"))
    pair.second.then(reply=s.text("from the second").using(20, 5))
    answer = await pair.tenant.chat(**(_TELL if stream else {}))
    assert answer.status == 200
    assert answer.body == b"".join(pair.second.requests[-1].sent)
    assert "retry-after" not in answer.headers
    failed, answered = await pair.entries(2)
    assert _ids([failed, answered]) == [
        (1, "attempt", "first", "provider_error"),
        (2, "usage", "second", "complete"),
    ]
    assert failed["request_id"] == answered["request_id"]
    assert (failed["cost_nanos"], failed["charge_nanos"]) == (0, 0)
    assert answered["cost_nanos"] == 20 * 3_000 + 5 * 2_000


@pytest.mark.parametrize("stream", [True, False])
async def test_each_provider_gets_its_own_key_and_model_and_the_callers_words(
    pair: Pair, stream: bool
) -> None:
    pair.first.then(reply=s.error(500))
    pair.second.then(reply=s.text("well"))
    answer = await pair.tenant.chat("the very words", stream=stream)
    one, two = pair.first.requests[-1], pair.second.requests[-1]
    assert one.body == two.body
    assert one.headers["authorization"] == "Bearer sk-first-key"
    assert two.headers["authorization"] == "Bearer sk-second-key"
    assert answer.headers["x-alcove-model"] == f"second/{MODEL}"
    await pair.entries(2)


async def test_next_provider_answers_when_the_first_cannot_be_reached(pair: Pair) -> None:
    gone = wire.ProviderChange(base_url="http://127.0.0.1:9/v1")
    await pair.house.client.change_provider("first", gone)
    pair.second.then(reply=s.text("from the second"))
    assert (await pair.tenant.chat(**_TELL)).status == 200
    rows = await pair.entries(2)
    assert _ids(rows)[0] == (1, "attempt", "first", "not_sent")
    assert (rows[0]["cost_nanos"], rows[0]["estimated"]) == (0, 0)


async def test_stream_that_breaks_before_a_word_goes_elsewhere_and_costs_its_operator(
    pair: Pair,
) -> None:
    pair.first.then(reply=s.text("never seen").dropped_after(20))
    pair.second.then(reply=s.text("from the second").using(20, 5))
    answer = await pair.tenant.chat(**_TELL)
    assert not answer.cut
    assert answer.body == b"".join(pair.second.requests[-1].sent)
    failed, answered = await pair.entries(2)
    assert (failed["outcome"], failed["estimated"], failed["charge_nanos"]) == ("cut", 1, 0)
    assert failed["cost_nanos"] > 0
    assert answered["charge_nanos"] > 0


async def test_silence_before_a_word_goes_elsewhere(pair: Pair) -> None:
    gate = s.Gate()
    pair.first.then(reply=s.text(gate, "never seen"))
    pair.second.then(reply=s.text("from the second"))
    answer = await pair.tenant.chat(**_TELL)
    assert answer.body == b"".join(pair.second.requests[-1].sent)
    assert _ids(await pair.entries(2))[0] == (1, "attempt", "first", "cut")
    gate.open()


async def test_error_that_comes_first_with_a_200_goes_elsewhere(pair: Pair) -> None:
    pair.first.then(reply=s.text(s.StreamError()))
    pair.second.then(reply=s.text("from the second"))
    answer = await pair.tenant.chat(**_TELL)
    assert b"Overloaded" not in answer.body
    assert answer.body == b"".join(pair.second.requests[-1].sent)
    assert _ids(await pair.entries(2))[0] == (1, "attempt", "first", "error")


@pytest.mark.parametrize(
    "reply",
    [s.text("a word ", s.StreamError()), s.text("a word ", "and more").dropped_after(600)],
    ids=["error", "cut"],
)
async def test_nothing_is_sent_again_after_the_first_word(pair: Pair, reply: Reply) -> None:
    pair.first.then(reply=reply)
    answer = await pair.tenant.chat(**_TELL)
    assert answer.body == b"".join(pair.first.requests[-1].sent)
    assert pair.second.requests == []
    [entry] = await pair.entries(1)
    assert (entry["kind"], entry["attempt"]) == ("usage", 1)
    assert entry["charge_nanos"] > 0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_what_the_asker_did_wrong_is_the_askers(pair: Pair, status: int) -> None:
    pair.first.then(reply=s.error(status))
    answer = await pair.tenant.chat()
    assert answer.status == status
    assert pair.second.requests == []
    await pair.entries(1)


async def test_last_failure_is_passed_on_as_it_is(pair: Pair) -> None:
    pair.first.then(reply=s.error(500, "the first"))
    pair.second.then(reply=s.error(429, "the second", retry_after="17", x_ratelimit_reset="9"))
    answer = await pair.tenant.chat()
    assert (answer.status, answer.headers["retry-after"]) == (429, "17")
    assert answer.headers["x-ratelimit-reset"] == "9"
    assert answer.body == b"".join(pair.second.requests[-1].sent)
    assert _ids(await pair.entries(2))[1] == (2, "usage", "second", "provider_error")


async def test_answer_that_says_nothing_is_passed_on_whole_at_its_end(pair: Pair) -> None:
    pair.first.then(reply=s.text("").using(20, 0))
    answer = await pair.tenant.chat(**_TELL)
    assert answer.body == b"".join(pair.first.requests[-1].sent)
    assert not answer.cut
    await pair.entries(1)


async def test_hold_covers_the_dearest_that_may_answer(pair: Pair) -> None:
    gate = s.Gate()
    pair.first.then(reply=s.text(gate, "well"))
    asking = asyncio.create_task(pair.tenant.chat("x" * 3_000, max_tokens=10))
    await gate.reached()
    [row] = await pair.house.rows("SELECT charge_held_nanos, markup_ppm FROM reservation")
    assert row["charge_held_nanos"] >= 3_000 * 3_000 * (10**6 + row["markup_ppm"]) // 10**6
    gate.open()
    assert (await asking).status == 200
    await pair.entries(1)


async def test_breaker_leaves_a_failing_model_alone_and_tries_it_again_later(
    pair: Pair, clock: FakeClock
) -> None:
    for _ in range(5):
        pair.first.then(reply=s.error(503))
    for _ in range(6):
        pair.second.then(reply=s.text("from the second"))
    for _ in range(6):
        assert (await pair.tenant.chat()).status == 200
    assert len(pair.first.requests) == 5
    clock.advance(60)
    pair.first.then(reply=s.text("well again"))
    assert b"well again" in (await pair.tenant.chat()).body
    pair.first.then(reply=s.text("well again"))
    assert b"well again" in (await pair.tenant.chat()).body
    await pair.entries(5 + 6 + 2)


async def test_call_is_refused_when_every_model_of_its_chain_is_left_alone(
    pair: Pair, clock: FakeClock
) -> None:
    for _ in range(5):
        pair.first.then(reply=s.error(503))
        pair.second.then(reply=s.error(500))
        assert (await pair.tenant.chat()).status == 500
    clock.advance(30)
    answer = await pair.tenant.chat()
    assert (answer.status, answer.headers["x-alcove-reason"]) == (503, "provider_resting")
    assert answer.headers["retry-after"] == "30"
    assert len(pair.second.requests) == 5
    await pair.entries(10)


async def test_alias_is_a_chain_of_its_own(pair: Pair) -> None:
    await pair.house.client.put_fallback("Quick", [f"second/{MODEL}", f"first/{MODEL}"])
    pair.second.then(reply=s.error(500))
    pair.first.then(reply=s.text("from the first"))
    assert b"from the first" in (await pair.tenant.chat(model="quick")).body
    assert [row[2] for row in _ids(await pair.entries(2))] == ["second", "first"]
    assert [chain.name for chain in await pair.house.client.fallbacks()] == [
        f"first/{MODEL}",
        "quick",
    ]
    await pair.house.client.put_fallback("quick", [])
    assert (await pair.tenant.chat(model="quick")).status == 400


async def test_target_that_cannot_be_called_is_left_out(pair: Pair) -> None:
    await pair.house.client.change_provider("second", wire.ProviderChange(enabled=False))
    pair.first.then(reply=s.error(500))
    assert (await pair.tenant.chat()).status == 500
    await pair.entries(1)


@pytest.mark.parametrize(
    "targets",
    [["second/none"], [f"first/{MODEL}"], [f"second/{MODEL}", f"SECOND/{MODEL}"], ["second"]],
)
async def test_chain_that_makes_no_sense_is_refused(pair: Pair, targets: list[str]) -> None:
    with pytest.raises(AlcoveError) as caught:
        await pair.house.client.put_fallback(f"first/{MODEL}", targets)
    assert caught.value.code == "invalid"
    assert caught.value.details["fields"][0]["field"] == "targets"


async def test_caller_who_left_is_not_asked_for_elsewhere(pair: Pair) -> None:
    gate = s.Gate()
    pair.first.then(reply=s.text(gate, s.StreamError()))
    asking = asyncio.create_task(pair.tenant.chat(**_TELL))
    await gate.reached()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    gate.open()
    await pair.entries(1)
    assert pair.second.requests == []


async def test_model_that_the_plan_does_not_offer_is_no_fallback(pair: Pair) -> None:
    tenants = pair.house.meter.tenants
    plus = replace(tenants.plans.get("plus"), models=(f"first/{MODEL}",))
    await tenants.load(replace(tenants.plans, by_name={**tenants.plans.by_name, "plus": plus}))
    pair.first.then(reply=s.error(503))
    assert (await pair.tenant.chat()).status == 503
    assert pair.second.requests == []
    await pair.entries(1)
