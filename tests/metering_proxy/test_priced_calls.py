"""Whole calls of models from the reviewed price file: what is held before, what is paid after, to the nano."""

from pathlib import Path
from typing import Any

import pytest

from infra.kit.clock import FakeClock
from tests import scripted as s
from tests.metering_proxy.house import MODEL, House, a_house
from tests.scripted import Reply, ScriptedProvider

pytestmark = pytest.mark.thorough

_SAID = [{"role": "user", "content": "hi"}]
_TOKENS = {
    "input_tokens": 1117,
    "input_tokens_details": {"cached_tokens": 1024},
    "output_tokens": 46,
    "output_tokens_details": {"reasoning_tokens": 46},
    "total_tokens": 1163,
}


def _response(tier: str | None) -> Reply:
    served = {} if tier is None else {"service_tier": tier}
    return Reply(
        body={"id": "r", "status": "completed", "model": "gpt-5", "usage": _TOKENS, **served}
    )


@pytest.mark.parametrize(
    ("asked", "served", "nanos"),
    [
        ("priority", "default", 704_250),
        ("priority", "priority", 1_408_500),
        ("auto", "flex", 352_125),
        ("flex", "default", 704_250),
        (None, "priority", 1_408_500),
        ("priority", None, 704_250),
        (None, "turbo", 1_408_500),  # no price of its own: the dearest
    ],
)
async def test_tier_that_was_served_is_paid_not_the_one_that_was_asked_for(
    house: House, scripted: ScriptedProvider, asked: str | None, served: str | None, nanos: int
) -> None:
    await house.connect(scripted, "openai")
    tenant = await house.tenant("free", charge_month_nanos=None)
    scripted.then(reply=_response(served))
    body: dict[str, Any] = {"model": "openai/gpt-5", "input": "hi", "max_output_tokens": 500}
    if asked is not None:
        body["service_tier"] = asked
    assert (await tenant.post("/v1/responses", body)).status == 200
    [entry] = await house.entries(tenant)
    assert (entry["cost_nanos"], entry["charge_nanos"]) == (nanos, nanos)
    assert entry["cost_nanos"] <= await house.held_at_first()
    unpriced = house.meter.metrics.registry.get_sample_value("meter_unpriced_total")
    assert unpriced == (served == "turbo")


async def test_searches_are_held_before_and_paid_after(
    house: House, scripted: ScriptedProvider
) -> None:
    await house.connect(scripted, "anthropic")
    tenant = await house.tenant("free", charge_month_nanos=None)
    usage = {
        "input_tokens": 25,
        "cache_creation_input_tokens": 1000,
        "cache_read_input_tokens": 2000,
        "cache_creation": {"ephemeral_5m_input_tokens": 600, "ephemeral_1h_input_tokens": 400},
        "output_tokens": 15,
        "server_tool_use": {"web_search_requests": 3},
    }
    answer = {"id": "m", "type": "message", "model": "claude-sonnet-4-5", "content": []}
    scripted.then(reply=Reply(body={**answer, "stop_reason": "end_turn", "usage": usage}))
    tool = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    body = {
        "model": "anthropic/claude-sonnet-4-5",
        "max_tokens": 500,
        "messages": _SAID,
        "tools": [tool],
    }
    assert (await tenant.post("/v1/messages", body)).status == 200
    [entry] = await house.entries(tenant)
    assert entry["cost_nanos"] == 35_550_000
    assert await house.held_at_first() >= 30_000_000 + 500 * 15_000


@pytest.mark.parametrize(("tokens", "nanos"), [(200_000, 250_100_000), (200_001, 500_152_500)])
async def test_long_request_is_paid_by_what_the_provider_counted(
    house: House, scripted: ScriptedProvider, tokens: int, nanos: int
) -> None:
    await house.connect(scripted, "google")
    tenant = await house.tenant("free", charge_month_nanos=None)
    told = {
        "promptTokenCount": tokens,
        "candidatesTokenCount": 10,
        "totalTokenCount": tokens + 10,
    }
    part = {"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}
    scripted.then(reply=Reply(body={"candidates": [part], "usageMetadata": told}))
    path = "/v1beta/models/gemini-2.5-pro:generateContent"
    body = {"contents": [{"parts": [{"text": "long " * 50_000}]}]}
    assert (await tenant.post(path, body)).status == 200
    [entry] = await house.entries(tenant)
    assert entry["cost_nanos"] == nanos


_BEFORE_ANY_PRICE = 1_600_000_000_000  # September 2020


async def test_model_without_a_price_of_that_day_is_neither_shown_nor_called(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    clock = FakeClock(_BEFORE_ANY_PRICE)
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/m.db", clock=clock) as house:
        await house.connect(scripted, "openai")
        tenant = await house.tenant("plus")
        refused = await tenant.chat(model="openai/gpt-5")
        assert (refused.status, refused.headers["x-alcove-reason"]) == (400, "model_not_priced")
        shown = {"authorization": f"Bearer {tenant.key}"}
        async with tenant.session.get("http://localhost/v1/models", headers=shown) as listed:
            assert [row["id"] for row in (await listed.json())["data"]] == [f"openai/{MODEL}"]
        assert await house.rows("SELECT * FROM reservation") == []
        assert scripted.requests == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"modalities": ["text", "audio"], "messages": _SAID}),
        ("/v1/images/generations", {"prompt": "a cat"}),
        ("/v1/audio/speech", {"input": "meow", "voice": "a"}),
    ],
)
async def test_what_has_no_price_is_refused_before_anything_is_held(
    house: House, scripted: ScriptedProvider, path: str, body: dict[str, Any]
) -> None:
    await house.connect(scripted, "openai")
    tenant = await house.tenant("plus")
    refused = await tenant.post(path, {"model": f"openai/{MODEL}", **body})
    assert refused.status == 400
    assert refused.headers["x-alcove-reason"] in ("model_not_priced", "wire_mismatch")
    assert await house.rows("SELECT * FROM reservation") == []
    assert scripted.requests == []


_ROLLING = """
[[plan]]
name = "free"
title = "Free"
charge_month = "0.0018"
tokens_day = 800
anchor = "rolling"
"""


async def test_rolling_windows_begin_when_the_tenant_came_and_follow_each_other(
    tmp_path: Path, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    plans_file = tmp_path / "plans.toml"
    plans_file.write_text(_ROLLING)
    day_ms = 86_400_000
    clock.advance(30 * 86_400 + 13 * 3_600)  # the 31st of January at 13:00
    scripted.always(reply=s.text("x").using(300, 300))
    url = f"sqlite:///{tmp_path}/m.db"
    async with a_house(tmp_path, url, clock=clock, plans_file=plans_file) as house:
        await house.connect(scripted)
        came_at = clock.now_at()
        tenant = await house.tenant("free")
        assert (await tenant.chat(max_tokens=400)).status == 200
        clock.advance(11.5 * 3_600)  # past midnight: the calendar's day is another, this one is not
        refused = await tenant.chat(max_tokens=400)
        assert (refused.status, refused.headers["x-alcove-reason"]) == (402, "quota_tokens_day")
        assert int(refused.headers["x-alcove-resets-at"]) == came_at + day_ms
        clock.advance(12.5 * 3_600)
        assert (await tenant.chat(max_tokens=400)).status == 200
        clock.advance(86_400)
        refused = await tenant.chat(max_tokens=400)
        assert (refused.status, refused.headers["x-alcove-reason"]) == (402, "quota_charge_month")
        # A month from the 31st of January is the last of February.
        assert int(refused.headers["x-alcove-resets-at"]) == came_at + 28 * day_ms
        clock.advance(26 * 86_400 - 0.001)
        assert (await tenant.chat(max_tokens=400)).status == 402
        clock.advance(0.001)
        assert (await tenant.chat(max_tokens=400)).status == 200
        await house.entries(tenant, 3)
        starts = await house.rows(
            "SELECT start_at FROM account_window WHERE kind = 'charge_month' ORDER BY start_at"
        )
        assert [row["start_at"] for row in starts] == [came_at, came_at + 28 * day_ms]
        assert (await house.verdict()).whole
