"""Limits hold at the edge, whoever comes at once; a refusal reaches no provider and tells when it ends."""

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import anthropic
import httpx
import httpx2
import openai
import pytest

from infra.kit.clock import FakeClock
from metering_proxy import wire
from tests import scripted as s
from tests.metering_proxy.house import MODEL, House, Tenant
from tests.scripted import ScriptedProvider

_LIMIT = (
    13_000_000  # nano-USD: room for five whole calls of the test below, markup included, and a part
)


async def test_parallel_calls_never_overspend_at_the_edge_of_the_limit(
    both: House, scripted: ScriptedProvider
) -> None:
    await both.connect(scripted)
    # Each answer is as long as it may be, so what is charged is all but what is held.
    scripted.always(reply=lambda request: s.text("x").using(40, request.json["max_tokens"]))
    tenant = await both.tenant("plus", charge_month_nanos=_LIMIT)
    answers: list[int] = []
    while set(answers[-20:]) != {402}:
        found = await asyncio.gather(*(tenant.chat(max_tokens=1_000) for _ in range(20)))
        answers += [answer.status for answer in found]
    assert set(answers) <= {200, 402, 429}
    done = answers.count(200)
    assert len(scripted.model_requests) == done > 5
    rows = await both.entries(tenant, done)
    spent = sum(row["charge_nanos"] for row in rows)
    least = (256 * 2_000 + 200 * 1_000) * 12 // 10  # less than this is not worth a call
    assert _LIMIT - least < spent <= _LIMIT
    assert (await both.verdict()).whole


async def test_token_limit_is_lowered_to_what_is_left_and_said(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text("x").using(100, 300))
    poor = await house.tenant("free", charge_month_nanos=1_000_000)
    answer = await poor.chat(max_tokens=900)
    assert answer.status == 200
    clamped = int(answer.headers["x-alcove-clamped-to"])
    assert 256 <= clamped < 900
    assert scripted.requests[-1].json["max_tokens"] == clamped
    [entry] = await house.entries(poor)
    assert entry["charge_nanos"] == 100 * 1_000 + 300 * 2_000


async def test_call_is_refused_when_less_than_the_least_is_left(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text("x").using(100, 200))
    poor = await house.tenant("free", charge_month_nanos=1_000_000)
    await poor.chat(max_tokens=200)
    [_] = await house.entries(poor)
    answer = await poor.chat(max_tokens=900)
    assert answer.status == 402
    assert answer.headers["x-alcove-reason"] == "quota_charge_month"
    assert answer.headers["x-should-retry"] == "false"
    quota = await house.client.quota(poor.id)
    assert int(answer.headers["x-alcove-resets-at"]) == quota.charge_month.resets_at
    assert json.loads(answer.body)["error"]["code"] == "quota_charge_month"
    assert len(scripted.requests) == 1
    assert await house.held(poor) == 0


async def test_charge_is_cost_and_the_plans_markup(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.then(reply=s.text("x").using(10, 5))
    paying = await house.tenant("plus")
    await paying.chat()
    [entry] = await house.entries(paying)
    assert (entry["cost_nanos"], entry["charge_nanos"]) == (20_000, 24_000)
    assert (await house.client.quota(paying.id)).charge_month.spent_nanos == 24_000


async def test_quota_raised_by_the_gateway_counts_at_once(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    poor = await house.tenant("free", charge_month_nanos=0)
    assert (await poor.chat()).status == 402
    scripted.then(reply=s.text("thanks"))
    raised = wire.QuotaOverride(charge_month_nanos=None)
    state = wire.TenantState(plan="free", status="active", version=2, quota=raised)
    await house.client.put_tenant(poor.id, state)
    assert (await poor.chat()).status == 200


@pytest.mark.parametrize(("limit_nanos", "status"), [(0, 402), (1, 413), (1_000_000, 402)])
async def test_what_costs_nothing_goes_on_when_more_is_spent_than_the_limit_is_by_now(
    both: House, scripted: ScriptedProvider, limit_nanos: int, status: int
) -> None:
    scripted.always(reply=s.text("x").using(100, 500))
    free = wire.ModelRow(id="free-model", input_nanos=0, output_nanos=0, max_output_tokens=1_000)
    await both.connect(scripted, more=[free])
    tenant = await both.tenant("plus", charge_month_nanos=10_000_000)
    await tenant.chat(max_tokens=500)
    await both.entries(tenant)
    lowered = wire.QuotaOverride(charge_month_nanos=limit_nanos)
    state = wire.TenantState(plan="plus", status="active", version=2, quota=lowered)
    await both.client.put_tenant(tenant.id, state)
    assert (await tenant.chat()).status == status
    body = {"model": "free-model", "messages": [{"role": "user", "content": "hi"}]}
    assert (await tenant.post("/v1/chat/completions", body)).status == 200
    entries = await both.entries(tenant, 2)
    assert entries[-1]["charge_nanos"] == 0
    assert (await both.verdict()).whole


async def test_requests_of_a_minute_are_counted_and_the_next_minute_is_new(
    timed: House, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    scripted.always(reply=s.text("x").using(1, 1))
    await timed.connect(scripted)
    tenant = await timed.tenant()
    for _ in range(20):
        assert (await tenant.chat()).status == 200
    answer = await tenant.chat()
    assert answer.status == 429
    assert answer.headers["x-alcove-reason"] == "requests_minute"
    assert answer.headers["retry-after"] == "60"
    assert answer.headers["x-should-retry"] == "false"
    clock.advance(60)
    assert (await tenant.chat()).status == 200


async def test_concurrent_calls_are_leases_that_come_back(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    gates = [s.Gate(), s.Gate()]
    for gate in gates:
        scripted.then(reply=s.text("a", gate, "b"))
    running = []
    for gate in gates:
        running.append(asyncio.create_task(tenant.chat(stream=True)))
        await gate.reached()
    third = await tenant.chat()
    assert (third.status, third.headers["x-alcove-reason"]) == (429, "concurrent_calls")
    assert (await house.client.quota(tenant.id)).concurrent.used == 2
    for gate in gates:
        gate.open()
    assert [answer.status for answer in await asyncio.gather(*running)] == [200, 200]
    scripted.then(reply=s.text("c"))
    assert (await tenant.chat()).status == 200


async def test_suspended_tenant_is_refused_until_resumed(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    await house.client.put_tenant(
        tenant.id, wire.TenantState(plan="free", status="suspended", version=5)
    )
    refused = await tenant.chat()
    assert (refused.status, refused.headers["x-alcove-reason"]) == (403, "suspended")
    await house.client.put_tenant(
        tenant.id, wire.TenantState(plan="free", status="active", version=6)
    )
    scripted.then(reply=s.text("back"))
    assert (await tenant.chat()).status == 200


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("gpt-99", "model_unknown"),
        ("scripted-model ", "model_unknown"),
        ("scripted-mоdel", "model_unknown"),  # a Cyrillic о
        ("models/scripted-model", "model_unknown"),
        ("scripted-model@2025", "model_unknown"),
        ("scripted-model:free", "model_unknown"),
        ("other/scripted-model", "model_unknown"),
    ],
)
async def test_unknown_model_is_refused_before_anything_is_held(
    house: House, tenant: Tenant, scripted: ScriptedProvider, model: str, reason: str
) -> None:
    answer = await tenant.chat(model=model)
    assert (answer.status, answer.headers["x-alcove-reason"]) == (400, reason)
    assert await house.rows("SELECT * FROM reservation") == []


@pytest.mark.parametrize(
    "model", ["SCRIPTED-Model", "scripted/scripted-model", "Scripted/SCRIPTED-MODEL"]
)
async def test_spelling_of_a_model_changes_neither_price_nor_name(
    house: House, tenant: Tenant, scripted: ScriptedProvider, model: str
) -> None:
    scripted.then(s.model_is(MODEL), reply=s.text("x").using(10, 1))
    assert (await tenant.chat(model=model)).status == 200
    [entry] = await house.entries(tenant)
    assert (entry["model"], entry["charge_nanos"]) == ("scripted/scripted-model", 12_000)


@pytest.fixture
def short_path() -> Iterator[Callable[[Tenant], Path]]:
    """A path to a tenant's socket that official clients can connect to: theirs may have 108 bytes."""
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as directory:

        def made(tenant: Tenant) -> Path:
            link = Path(directory) / "m.sock"
            link.symlink_to(tenant.socket)
            return link

        yield made


async def test_openai_client_does_not_repeat_a_refusal(
    house: House, tenant: Tenant, short_path: Callable[[Tenant], Path]
) -> None:
    poor = await house.tenant("free", charge_month_nanos=0)
    transport = httpx.AsyncHTTPTransport(uds=str(short_path(poor)))
    tried: list[httpx.Request] = []

    async def note(request: httpx.Request) -> None:
        tried.append(request)

    async with (
        httpx.AsyncClient(transport=transport, event_hooks={"request": [note]}) as http,
        openai.AsyncOpenAI(api_key=poor.key, base_url="http://m/v1", http_client=http) as client,
    ):
        with pytest.raises(openai.APIStatusError) as caught:
            await client.chat.completions.create(
                model="default", messages=[{"role": "user", "content": "hi"}]
            )
    assert caught.value.status_code == 402
    assert caught.value.code == "quota_charge_month"
    assert len(tried) == 1


async def test_anthropic_client_does_not_repeat_a_refusal(
    house: House, anthropic_tenant: Tenant, short_path: Callable[[Tenant], Path]
) -> None:
    poor = await house.tenant("free", charge_month_nanos=0)
    transport = httpx2.AsyncHTTPTransport(uds=str(short_path(poor)))
    tried: list[httpx2.Request] = []

    async def note(request: httpx2.Request) -> None:
        tried.append(request)

    async with (
        httpx2.AsyncClient(transport=transport, event_hooks={"request": [note]}) as http,
        anthropic.AsyncAnthropic(api_key=poor.key, base_url="http://m", http_client=http) as client,
    ):
        with pytest.raises(anthropic.APIStatusError) as caught:
            await client.messages.create(
                model="default", max_tokens=500, messages=[{"role": "user", "content": "hi"}]
            )
    assert caught.value.status_code == 402
    assert caught.value.response.headers["x-alcove-reason"] == "quota_charge_month"
    assert len(tried) == 1
