"""However a call ends, it is settled once: nothing stays held, and what was estimated says so."""

import asyncio
import json
from pathlib import Path

import pytest

from infra.kit.relay import Timeouts
from tests import scripted as s
from tests.metering_proxy.house import House, Tenant, a_house
from tests.scripted import Reply, ScriptedProvider

pytestmark = pytest.mark.thorough

_WORDS = ("one two three ", "four five six ", "seven eight nine")


async def _one(house: House, tenant: Tenant) -> dict[str, object]:
    [entry] = await house.entries(tenant)
    [row] = await house.rows("SELECT state FROM reservation WHERE account = :a", a=tenant.id)
    assert row["state"] == "settled"
    assert (await house.verdict()).whole
    return entry


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
@pytest.mark.parametrize("leave_after", [1, 60, 250])
async def test_caller_who_leaves_is_charged_what_was_generated(
    house: House, scripted: ScriptedProvider, wire: str, leave_after: int
) -> None:
    await house.connect(scripted, f"{wire}_compatible")
    tenant = await house.tenant()
    gate = s.Gate()
    scripted.then(reply=s.text(*_WORDS, gate, "the end").using(20, 33))
    path = "/v1/chat/completions" if wire == "openai" else "/v1/messages"
    body = {
        "model": "default",
        "stream": True,
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "hi"}],
    }
    response = await tenant.session.post(
        f"http://localhost{path}", json=body, headers={"authorization": f"Bearer {tenant.key}"}
    )
    seen = 0
    while seen < leave_after:
        seen += len(await response.content.readany())
    await gate.reached()
    response.close()
    gate.open()
    entry = await _one(house, tenant)
    assert (entry["input_tokens"], entry["output_tokens"], entry["estimated"]) == (20, 33, 0)


async def test_caller_who_leaves_before_the_answer_is_charged_once(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    gate = s.Gate()
    scripted.then(reply=s.text(gate, "late").using(20, 1))
    asking = asyncio.create_task(tenant.chat())
    await gate.reached()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    gate.open()
    entry = await _one(house, tenant)
    assert (entry["outcome"], entry["output_tokens"], entry["estimated"]) == ("left", 1, 0)


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
@pytest.mark.parametrize("after", [300, 600, 900])
async def test_stream_that_breaks_is_cut_and_charged_by_estimate(
    house: House, scripted: ScriptedProvider, wire: str, after: int
) -> None:
    await house.connect(scripted, f"{wire}_compatible")
    tenant = await house.tenant()
    scripted.then(reply=s.text(*_WORDS).using(20, 9).dropped_after(after))
    answer = await (tenant.chat(stream=True) if wire == "openai" else tenant.message(stream=True))
    assert answer.cut
    assert answer.body == b"".join(scripted.requests[-1].sent)
    entry = await _one(house, tenant)
    assert (entry["outcome"], entry["estimated"]) == ("cut", 1)
    assert entry["cost_nanos"] > 0  # type: ignore[operator]
    forwarded = b"one two" in answer.body
    assert (entry["charge_nanos"] > 0) == forwarded  # type: ignore[operator]


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
async def test_error_inside_a_stream_is_passed_on_and_charged_by_estimate(
    house: House, scripted: ScriptedProvider, wire: str
) -> None:
    await house.connect(scripted, f"{wire}_compatible")
    tenant = await house.tenant()
    scripted.then(reply=s.text("some words first ", s.StreamError()))
    answer = await (tenant.chat(stream=True) if wire == "openai" else tenant.message(stream=True))
    assert b"Overloaded" in answer.body
    assert answer.body == b"".join(scripted.requests[-1].sent)
    entry = await _one(house, tenant)
    assert (entry["outcome"], entry["estimated"]) == ("error", 1)
    assert entry["charge_nanos"] > 0  # type: ignore[operator]


@pytest.mark.parametrize("stream", [True, False])
async def test_answer_without_usage_is_charged_by_estimate(
    house: House, tenant: Tenant, scripted: ScriptedProvider, stream: bool
) -> None:
    scripted.then(reply=s.text("x" * 400).without_usage())
    assert (await tenant.chat("y" * 400, stream=stream)).status == 200
    entry = await _one(house, tenant)
    assert entry["estimated"] == 1
    assert entry["output_tokens"] == 100
    assert 100 <= entry["input_tokens"] <= 200  # type: ignore[operator]


@pytest.mark.parametrize("stream", [True, False])
async def test_nothing_is_charged_when_the_provider_says_zero(
    house: House, tenant: Tenant, scripted: ScriptedProvider, stream: bool
) -> None:
    scripted.then(reply=s.text("x").using(0, 0))
    assert (await tenant.chat(stream=stream)).status == 200
    entry = await _one(house, tenant)
    assert (entry["charge_nanos"], entry["estimated"], entry["outcome"]) == (0, 0, "complete")


async def test_usage_above_the_hold_is_charged_in_full_and_marked(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text("x").using(100_000, 50_000))
    await tenant.chat()
    entry = await _one(house, tenant)
    assert entry["charge_nanos"] == 100_000 * 1_000 + 50_000 * 2_000
    assert entry["overrun"] == 1


@pytest.mark.parametrize(
    "raw",
    [{}, {"prompt_tokens": "many"}, {"prompt_tokens": -5, "completion_tokens": None}, {"x": 1}],
)
async def test_usage_that_is_nonsense_breaks_nothing(
    house: House, tenant: Tenant, scripted: ScriptedProvider, raw: dict[str, object]
) -> None:
    scripted.then(reply=s.text("words").with_raw_usage(raw))
    answer = await tenant.chat(stream=True)
    assert (answer.status, answer.cut) == (200, False)
    await _one(house, tenant)


@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
async def test_providers_refusal_is_passed_on_and_costs_nothing(
    house: House, tenant: Tenant, scripted: ScriptedProvider, status: int
) -> None:
    scripted.then(reply=s.error(status, retry_after="7"))
    answer = await tenant.chat()
    assert (answer.status, answer.headers["retry-after"]) == (status, "7")
    assert answer.body == b"".join(scripted.requests[-1].sent)
    entry = await _one(house, tenant)
    assert (entry["outcome"], entry["cost_nanos"], entry["estimated"]) == ("provider_error", 0, 0)


async def test_nothing_is_charged_when_the_provider_cannot_be_reached(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    [connection] = await house.client.providers()
    from metering_proxy.wire import ProviderChange

    gone = ProviderChange(base_url="http://127.0.0.1:9/v1")
    await house.client.change_provider(connection.id, gone)
    answer = await tenant.chat()
    assert (answer.status, answer.headers["x-alcove-reason"]) == (503, "unreachable")

    entry = await _one(house, tenant)
    assert (entry["outcome"], entry["cost_nanos"], entry["charge_nanos"]) == ("not_sent", 0, 0)
    assert json.loads(str(entry["parts"]))["failure"] == "unreachable"
    used = await house.rows("SELECT kind FROM account_window WHERE spent <> 0 OR held <> 0")
    assert used == [], "what was never sent is no request that a plan counts"


async def test_silent_provider_is_given_up_and_settled(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    gate = s.Gate()
    scripted.then(reply=s.text("some words ", gate))
    quick = Timeouts(first_byte_s=5, idle_s=0.2)
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/m.db", timeouts=quick) as house:
        await house.connect(scripted)
        tenant = await house.tenant()
        answer = await tenant.chat(stream=True)
        assert answer.cut
        entry = await _one(house, tenant)
        assert (entry["outcome"], entry["estimated"]) == ("cut", 1)
    gate.open()


async def test_dearer_model_that_answered_is_what_is_charged(
    house: House, scripted: ScriptedProvider
) -> None:
    from metering_proxy import wire

    dear = wire.ModelRow(id="scripted-model", input_nanos=10**10, output_nanos=10**10)
    cheap = wire.ModelRow(id="cheap", input_nanos=10**9, output_nanos=10**9)
    await house.client.create_provider(
        wire.NewProvider(
            kind="openai_compatible", name="two", base_url=scripted.url, models=[cheap, dear]
        )
    )
    tenant = await house.tenant()
    scripted.models = ("scripted-model",)
    scripted.then(
        reply=Reply(
            body={
                "model": "scripted-model",
                "choices": [{"message": {}}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 1},
            }
        )
    )
    await tenant.chat(model="cheap")
    [entry] = await house.entries(tenant)
    assert (entry["model"], entry["response_model"]) == ("two/cheap", "scripted-model")
    assert entry["charge_nanos"] == 11 * 10_000
