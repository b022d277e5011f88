"""The tier by which an answer is estimated that broke off, or whose meter died, before it told its usage."""

import json
from fractions import Fraction
from typing import Any

import pytest

from metering_proxy.pricing import Price, Rates
from metering_proxy.wires import paths
from tests import scripted as s
from tests.metering_proxy.house import House
from tests.scripted import Reply, ScriptedProvider

pytestmark = pytest.mark.thorough

_SAID = [{"role": "user", "content": "hi"}]
_TOKENS = {"input_tokens": 1117, "output_tokens": 46, "total_tokens": 1163}


def _response(tier: str) -> Reply:
    whole = {"id": "r", "status": "completed", "model": "gpt-5", "usage": _TOKENS}
    return Reply(body={**whole, "service_tier": tier})


# gpt-5 in the plain tier: $1.25 and $10 a million; priority is twice as dear, flex half.
@pytest.mark.parametrize(
    ("asked", "named", "factor"),
    [
        (None, None, 2),  # a setting of the whole account may have chosen any
        ("auto", None, 2),
        ("auto", "auto", 2),
        ("default", None, 1),
        ("priority", None, 2),
        ("priority", "default", 1),
        ("default", "priority", 2),
        ("flex", None, 1),
        ("flex", "flex", Fraction(1, 2)),
        (None, "turbo", 2),  # no price of its own: the dearest
    ],
)
async def test_answer_that_is_cut_is_estimated_at_its_tier_or_the_dearest_it_may_have(
    house: House,
    scripted: ScriptedProvider,
    asked: str | None,
    named: str | None,
    factor: int | Fraction,
) -> None:
    await house.connect(scripted, "openai")
    tenant = await house.tenant("free", charge_month_nanos=None)
    chunk: dict[str, Any] = {"model": "gpt-5", "choices": [{"delta": {"content": "x" * 400}}]}
    if named is not None:
        chunk["service_tier"] = named
    event = b"data: " + json.dumps(chunk).encode() + b"\n\n"
    scripted.then(reply=s.recorded(event * 2, "text/event-stream").dropped_after(len(event)))
    tier = {} if asked is None else {"service_tier": asked}
    body = {"model": "openai/gpt-5", "messages": _SAID, "stream": True, "max_tokens": 500, **tier}
    assert (await tenant.post("/v1/chat/completions", body)).cut
    [entry] = await house.entries(tenant)
    assert (entry["outcome"], entry["estimated"], entry["output_tokens"]) == ("cut", 1, 100)
    plain = entry["input_tokens"] * 1_250 + 100 * 10_000
    assert entry["cost_nanos"] == plain * factor
    assert entry["cost_nanos"] <= await house.held_at_first()


async def test_recovery_of_a_lost_call_estimates_at_the_dearest_tier_it_may_have_had(
    house: House, scripted: ScriptedProvider
) -> None:
    await house.connect(scripted, "openai")
    tenant = await house.tenant("free", charge_month_nanos=None)
    for tier in ("default", "priority"):
        scripted.then(reply=_response(tier))
        body = {"model": "openai/gpt-5", "input": "hi", "service_tier": tier}
        assert (await tenant.post("/v1/responses", body)).status == 200
    await house.entries(tenant, 2)
    rows = await house.rows(
        "SELECT output_rate_nanos, input_cost_nanos FROM reservation ORDER BY created_at, request_id"
    )
    assert [row["output_rate_nanos"] for row in rows] == [10_000_000_000, 20_000_000_000]
    assert rows[1]["input_cost_nanos"] == 2 * rows[0]["input_cost_nanos"] > 0


def test_message_is_held_at_the_dearest_place_whatever_tier_it_asks_for() -> None:
    body = {"model": "m", "max_tokens": 9, "messages": _SAID, "service_tier": "standard_only"}
    ask = paths.WIRES["anthropic_messages"].read(json.dumps(body).encode())
    price = Price("p", 0, Rates(1), tiers={"us": Fraction(11, 10)})
    assert price.dearest_factor(ask.tier) == Fraction(11, 10)
