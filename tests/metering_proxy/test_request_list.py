"""The list of ended calls: newest first, in pages that miss and repeat nothing, of one tenant or of all."""

import pytest

from infra.kit.errors import AlcoveError
from tests import scripted as s
from tests.metering_proxy.house import House
from tests.scripted import ScriptedProvider


async def test_pages_of_calls_miss_and_repeat_none_and_keep_tenants_apart(
    both: House, scripted: ScriptedProvider
) -> None:
    house = both
    scripted.always(reply=s.text("x").using(100, 50))
    await house.connect(scripted)
    ada, bob = await house.tenant(), await house.tenant()
    made: dict[str, list[str]] = {ada.id: [], bob.id: []}
    for n in range(5):
        tenant = bob if n == 2 else ada
        answer = await tenant.chat(max_tokens=100)
        made[tenant.id].append(answer.headers["x-alcove-request-id"])
    await house.entries(ada, 4)
    await house.entries(bob, 1)
    seen, before = [], None
    while True:
        page = await house.client.requests(tenant=ada.id, before=before, limit=3)
        seen += [row.id for row in page.rows]
        before = page.next
        if before is None:
            break
    assert seen == list(reversed(made[ada.id]))
    everybody = await house.client.requests()
    assert {row.id for row in everybody.rows} == {*made[ada.id], *made[bob.id]}
    assert everybody.next is None
    row = (await house.client.requests(tenant=bob.id)).rows[0]
    assert (row.tenant, row.payer, row.outcome) == (bob.id, "operator", "complete")
    assert (row.input_tokens, row.output_tokens, row.charge_nanos) == (100, 50, 200_000)


async def test_place_that_is_none_is_refused(house: House) -> None:
    with pytest.raises(AlcoveError) as caught:
        await house.client.requests(before="yesterday")
    assert caught.value.code == "invalid"
