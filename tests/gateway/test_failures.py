"""What admins see of providers whose calls fail, and of the calls that failed."""

import re
from typing import Any

import pytest

from gateway import failures
from metering_proxy import wire
from tests.gateway.conftest import Gateway

pytestmark = pytest.mark.thorough

NOW_AT = 1_700_000_000_000
CALL = 'href="/admin/requests/01'


def _fails(**changes: Any) -> wire.Breaker:
    told = {
        "provider": "p1",
        "model": "p1/gpt-5",
        "payer": "operator",
        "state": "open",
        "since_at": NOW_AT,
        "last_at": NOW_AT + 60_000,
        "failures": 7,
        "why": "unreachable",
        "probe_at": NOW_AT + 120_000,
        "passed_over": 3,
    }
    return wire.Breaker.model_validate(told | changes)


async def test_provider_whose_calls_fail_is_not_shown_as_one_that_works(gateway: Gateway) -> None:
    root = await gateway.admin()
    new = {"kind": "openai", "name": "OpenAI", "key": "sk-a", "make_default": "on"}
    await root.submit("/admin/providers", **new)
    well = await root.visit("/admin/providers")
    assert "Works" in well.text
    assert "Calls fail" not in well.text
    gateway.meter.breakers = [_fails()]
    broken = (await root.visit("/admin/providers")).text
    assert "Calls fail" in broken
    assert "badge good" not in broken, "nothing of it is green"
    assert "<strong>gpt-5</strong> could not be reached" in broken
    assert "7 calls in a row have failed, the first" in broken
    assert 'datetime="2023-11-14T22:13:20Z"' in broken, "since when"
    assert "left alone for" in broken
    assert "3 calls meanwhile were not sent there" in broken
    assert "Passed its test" in broken
    gateway.meter.breakers = [_fails(state="half_open", probe_at=None)]
    assert "The next call tries it." in (await root.visit("/admin/providers")).text
    gateway.meter.breakers = [_fails(state="failing", failures=1, probe_at=None, why="http_401")]
    once = (await root.visit("/admin/providers")).text
    assert "Last call failed" in once
    assert "refuses our key (HTTP 401)" in once
    gateway.meter.breakers = [_fails(payer="tenant"), _fails(provider="p9")]
    assert "badge good" in (await root.visit("/admin/providers")).text, "that is not this one"


async def test_passed_test_of_one_that_fails_shows_the_whole_page_anew(gateway: Gateway) -> None:
    root = await gateway.admin()
    await root.submit("/admin/providers", kind="openai", name="OpenAI", key="sk-a")
    headers = {"hx-request": "true", "origin": "http://alcove.test", "x-csrf-token": root.csrf}
    part = await root.send("POST", "/admin/providers/p1/probes", headers=headers)
    assert "It answered." in part.text
    gateway.meter.breakers = [_fails()]
    anew = await root.send("POST", "/admin/providers/p1/probes", headers=headers)
    assert (anew.status, anew.headers["hx-refresh"]) == (204, "true")
    gateway.meter.probe_fails = True
    failed = await root.send("POST", "/admin/providers/p1/probes", headers=headers)
    assert "Does not work" in failed.text


async def test_calls_that_failed_stand_with_their_reason_and_can_be_asked_for_alone(
    gateway: Gateway,
) -> None:
    root = await gateway.admin()
    own = await gateway.tenant_of("admin@example.org")
    well = gateway.meter.books.called(own)
    nothing = {"input_tokens": 0, "output_tokens": 0, "cost_nanos": 0, "charge_nanos": 0}
    for _ in range(52):
        gateway.meter.books.called(own, outcome="not_sent", failure="unreachable", **nothing)
    gateway.meter.books.called(own, outcome="error", failure="overloaded_error")
    listed = (await root.visit("/admin/requests?only=failed")).text
    assert "openai could not be reached" in listed
    assert "Not sent" in listed
    assert "openai said overloaded_error" in listed
    [onward] = re.findall(r"/admin/requests\?(only=failed&amp;before=[^\"]+)\"", listed)
    older = (await root.visit(f"/admin/requests?{onward.replace('&amp;', '&')}")).text
    assert (listed.count(CALL), older.count(CALL)) == (50, 3)
    assert well.id not in listed + older
    assert (await root.visit("/admin/requests")).text.count(CALL) == 50
    one = (await root.visit(f"/admin/requests/{gateway.meter.books.calls[1].id}")).text
    assert "openai could not be reached" in one
    gateway.meter.books.calls.clear()
    assert "No call has failed" in (await root.visit("/admin/requests?only=failed")).text


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("idle", "fell silent"),
        ("http_402", "wants to be paid (HTTP 402)"),
        ("http_503", "answered HTTP 503"),
        ("http_", "said http_"),
        ("RESOURCE_EXHAUSTED", "said RESOURCE_EXHAUSTED"),
    ],
)
def test_failure_is_said_behind_the_providers_name(word: str, said: str) -> None:
    assert failures.failure(word) == said
