"""What an answer's words about its usage come to in the ledger, through a real meter."""

from typing import Any

import pytest

from metering_proxy import wire
from tests import scripted as s
from tests.metering_proxy.house import MODEL, ROW, House, Tenant
from tests.metering_proxy.small_answers import (
    begun,
    chat,
    ended,
    events,
    halted,
    messages,
    said,
    stop,
    used,
    whole,
    word,
)
from tests.scripted import ScriptedProvider, serve

pytestmark = pytest.mark.thorough

_TELL: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}


@pytest.mark.parametrize("stream", [True, False])
async def test_input_that_was_never_filled_in_is_estimated_alone(
    house: House, tenant: Tenant, scripted: ScriptedProvider, stream: bool
) -> None:
    usage = {"prompt_tokens": 0, "completion_tokens": 7, "total_tokens": 7}
    parts = [word("x" * 100) for _ in range(4)]
    body = chat(*parts, stop(), used(**usage)) if stream else whole(usage, text="x" * 400)
    scripted.then(reply=s.recorded(body, "text/event-stream" if stream else "application/json"))
    answer = await tenant.chat("y" * 400, **(_TELL if stream else {}))
    assert answer.body == body
    [entry] = await house.entries(tenant)
    assert (entry["outcome"], entry["estimated"], entry["output_tokens"]) == ("complete", 1, 7)
    assert 100 <= entry["input_tokens"] <= 200
    assert entry["charge_nanos"] == entry["input_tokens"] * 1_000 + 7 * 2_000
    assert (await house.verdict()).whole


async def test_message_whose_end_was_not_counted_costs_about_what_was_passed_on(
    house: House, anthropic_tenant: Tenant, scripted: ScriptedProvider
) -> None:
    body = messages(begun(input_tokens=25, output_tokens=1), *[said("x" * 100)] * 4, halted())
    scripted.then(reply=s.recorded(body))
    answer = await anthropic_tenant.message(stream=True)
    assert answer.body == body
    [entry] = await house.entries(anthropic_tenant)
    assert (entry["input_tokens"], entry["output_tokens"], entry["estimated"]) == (25, 100, 1)


async def test_input_that_turned_out_to_be_cached_is_paid_once(
    house: House, anthropic_tenant: Tenant, scripted: ScriptedProvider
) -> None:
    start = begun(input_tokens=1000, output_tokens=0)
    end = ended(input_tokens=0, cache_read_input_tokens=1000, output_tokens=5)
    scripted.then(reply=s.recorded(messages(start, said(), end)))
    await anthropic_tenant.message(stream=True)
    [entry] = await house.entries(anthropic_tenant)
    assert (entry["input_tokens"], entry["cache_read_tokens"]) == (0, 1000)
    assert (entry["charge_nanos"], entry["estimated"]) == (1_000 * 1_000 + 5 * 2_000, 0)


@pytest.mark.parametrize(
    "error",
    [{"object": "error", "message": "no room", "code": 400}, stop("network_error")],
    ids=["object", "ending"],
)
async def test_next_provider_answers_where_the_first_says_an_error_in_its_own_way(
    house: House, scripted: ScriptedProvider, error: dict[str, Any]
) -> None:
    async with serve(ScriptedProvider()) as second:
        for name, url in (("first", scripted.url), ("second", second.url)):
            new = wire.NewProvider(kind="openai_compatible", name=name, base_url=url, models=[ROW])
            await house.client.create_provider(new)
        await house.client.put_fallback(f"first/{MODEL}", [f"second/{MODEL}"])
        tenant = await house.tenant()
        scripted.then(reply=s.recorded(events(error, end="[DONE]")))
        second.then(reply=s.text("from the second").using(20, 5))
        answer = await tenant.chat(model=f"first/{MODEL}", **_TELL)
        assert b"from the second" in answer.body
        failed, answered = await house.entries(tenant, 2)
        assert (failed["kind"], failed["outcome"], failed["charge_nanos"]) == (
            "attempt",
            "error",
            0,
        )
        assert answered["charge_nanos"] == 20 * 1_000 + 5 * 2_000
        second.verify()
