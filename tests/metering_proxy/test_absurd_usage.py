"""A provider that tells numbers no call has: they are not believed, nothing is lost, and nobody pays for them."""

import json

import pytest

from metering_proxy.wires import numbers
from tests import scripted as s
from tests.metering_proxy.house import House
from tests.scripted import ScriptedProvider

_ABSURD = (
    (2**53 - 1, 2**53 - 1),
    (2**40, 5),
    (5, 2**40),
    (2**63, 1),
    (10**30, 1),
    (-5, 5),
    (5, -5),
    (1_000_000_001, 1),
)


async def test_call_is_estimated_and_settled_when_its_usage_is_absurd(
    both: House, scripted: ScriptedProvider
) -> None:
    await both.connect(scripted)
    for told in _ABSURD:
        tenant = await both.tenant("plus")
        scripted.then(reply=s.text("x").using(*told))
        answer = await tenant.chat(max_tokens=300)
        assert answer.status == 200
        assert (
            json.loads(answer.body)["usage"]["prompt_tokens"] == told[0]
        )  # bytes are the provider's
        [entry] = await both.entries(tenant)
        assert (entry["estimated"], entry["overrun"]) == (1, 0), told
        assert 0 < entry["charge_nanos"] < 1_000_000
    assert (await both.verdict()).whole


_NAMES = (
    (b'"a\\u0000b"', "a\ufffdb"),
    (b'"\\u0000"', "\ufffd"),
    (b'"\\ud800x"', "?x"),
    (b'"' + "\U0001f600".encode() * 300 + b'"', "\U0001f600" * 200),
    (b'"x\\ny"', "x\ny"),
    (b'""', None),
    (b"5", None),
    (b'["x"]', None),
    (b"null", None),
)


async def test_call_is_settled_by_its_usage_whatever_its_provider_calls_the_model(
    both: House, scripted: ScriptedProvider
) -> None:
    await both.connect(scripted)
    choice = b'[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]'
    usage = b'{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}'
    for raw, kept in _NAMES:
        tenant = await both.tenant("plus")
        body = b'{"id":"x","model":%b,"choices":%b,"usage":%b}' % (raw, choice, usage)
        scripted.then(reply=s.recorded(body, "application/json"))
        assert (await tenant.chat()).body == body
        [entry] = await both.entries(tenant)
        assert (entry["response_model"], entry["cost_nanos"]) == (kept, 17_000), raw
        assert (entry["estimated"], entry["outcome"]) == (0, "complete")


async def test_call_beyond_its_hold_is_charged_in_full_when_its_usage_is_possible(
    house: House, scripted: ScriptedProvider
) -> None:
    await house.connect(scripted)
    tenant = await house.tenant("plus")
    scripted.then(reply=s.text("x").using(100, 5_000))
    await tenant.chat(max_tokens=300)
    [entry] = await house.entries(tenant)
    assert (entry["estimated"], entry["overrun"], entry["cost_nanos"]) == (0, 1, 10_100_000)


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (0, 0),
        (7.0, 7),
        ("7", 7),
        (10**9, 10**9),
        (10**9 + 1, None),
        ("9999999999999999", None),
        (1e308, None),
        (float("inf"), None),
        (float("nan"), None),
        (-1, None),
        (-0.0, 0),
        (1.5, None),
        (True, None),
        ("７", None),
        ("+7", None),
        ("", None),
        ([7], None),
        (None, None),
    ],
)
def test_count_of_an_answer_is_a_number_that_a_call_can_have(
    value: object, count: int | None
) -> None:
    assert numbers.reported(value) == count
