"""A model whose fallbacks cost more than its caller can pay: it is called itself, and they are not."""

from pathlib import Path

import pytest

from metering_proxy import wire
from tests import scripted as s
from tests.metering_proxy.house import MODEL, ROW, House, Tenant, a_house
from tests.scripted import ScriptedProvider

_FREE = wire.ModelRow(id="free", input_nanos=0, output_nanos=0, max_output_tokens=1_000)
_CHEAP = ROW.model_copy(update={"id": "cheap"})
_DEAR = ROW.model_copy(update={"id": "dear", "output_nanos": 1_000 * ROW.output_nanos})
_LONG = wire.ModelRow(id="long", input_nanos=0, output_nanos=0, max_output_tokens=900_000)


@pytest.fixture
async def chained(house: House, scripted: ScriptedProvider) -> House:
    """A free model, one that costs as the test's own does, a dear one, and one that may answer at great length."""
    await house.connect(scripted, more=[_FREE, _CHEAP, _DEAR, _LONG])
    return house


async def _ask(tenant: Tenant, model: str, **more: object) -> tuple[int, str | None]:
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}], **more}
    answer = await tenant.post("/v1/chat/completions", body)
    return answer.status, answer.headers.get("x-alcove-model")


# The model called, what follows it, what is left of the month and of the day's tokens; who is asked if all fail.
CHAINS = [
    ("free", ["dear"], 0, None, ["free"]),
    ("free", ["dear", "cheap"], 0, None, ["free"]),
    ("free", ["dear", "long"], 0, None, ["free"]),  # which is free as well, but may use more tokens
    ("cheap", ["dear"], 3_000_000, None, ["cheap"]),
    ("cheap", ["dear", "free"], 3_000_000, None, ["cheap", "free"]),
    ("cheap", [MODEL, "dear"], 3_000_000, None, ["cheap", MODEL]),
    ("free", ["long"], 0, 100_000, ["free", "long"]),
    ("free", ["dear"], None, None, ["free", "dear"]),
    ("cheap", ["dear", "free"], None, None, ["cheap", "dear", "free"]),
    ("dear", ["cheap"], None, None, ["dear", "cheap"]),
]


@pytest.mark.parametrize(("model", "chain", "month", "day", "asked"), CHAINS)
async def test_models_are_called_that_can_be_paid_for_and_no_others(
    chained: House,
    scripted: ScriptedProvider,
    model: str,
    chain: list[str],
    month: int | None,
    day: int | None,
    asked: list[str],
) -> None:
    await chained.client.put_fallback(
        f"scripted/{model}", [f"scripted/{target}" for target in chain]
    )
    tenant = await chained.tenant("plus", charge_month_nanos=month, tokens_day=day)
    scripted.always(reply=s.error(500))
    assert (await _ask(tenant, model))[0] == 500
    assert [request.json["model"] for request in scripted.model_requests] == asked
    rows = await chained.entries(tenant, len(asked))
    assert sum(row["charge_nanos"] for row in rows) == 0
    assert (await chained.verdict()).whole


async def test_dear_model_is_refused_though_its_fallback_could_be_paid_for(
    chained: House, scripted: ScriptedProvider
) -> None:
    await chained.client.put_fallback("scripted/dear", ["scripted/free"])
    tenant = await chained.tenant("plus", charge_month_nanos=3_000_000)
    assert await _ask(tenant, "dear") == (413, None)
    assert scripted.requests == []


async def test_rate_that_is_used_up_refuses_whatever_the_fallbacks_cost(
    chained: House, scripted: ScriptedProvider
) -> None:
    await chained.client.put_fallback("scripted/free", ["scripted/dear"])
    tenant = await chained.tenant("plus", requests_minute=0)
    assert (await _ask(tenant, "free"))[0] == 429
    assert await chained.held(tenant) == 0


async def test_grant_pays_for_a_dear_fallback_where_the_plan_cannot(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/m.db") as house:
        await house.connect(scripted, more=[_FREE, _DEAR])
        await house.client.put_fallback("scripted/free", ["scripted/dear"])
        tenant = await house.tenant("plus", charge_month_nanos=0)
        grant = wire.GrantRequest(amount_nanos=10_000_000_000)
        await house.client.put_grant(tenant.id, "g", grant)
        scripted.then(reply=s.error(500))
        scripted.then(reply=s.text("x").using(10, 5))
        assert await _ask(tenant, "free") == (200, "scripted/dear")
        rows = await house.entries(tenant, 2)
        paid = sum(row["grant_nanos"] for row in rows)
        assert paid == sum(row["charge_nanos"] for row in rows) > 0
        assert (await house.verdict()).whole
