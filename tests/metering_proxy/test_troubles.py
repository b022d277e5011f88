"""What an admin finds of a dead provider: which models fail, since when and why, and the calls that failed."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from infra.kit.clock import FakeClock
from metering_proxy import wire
from metering_proxy.providers.breakers import FAILURES
from tests import scripted as s
from tests.metering_proxy.house import MODEL, House, Tenant, a_house
from tests.scripted import ScriptedProvider

pytestmark = pytest.mark.thorough


@pytest.fixture
async def lived(tmp_path: Path, database_url: str, clock: FakeClock) -> AsyncIterator[House]:
    """A meter by the test's clock, once on SQLite and once on PostgreSQL."""
    async with a_house(tmp_path, database_url, clock=clock) as running:
        yield running


async def _failed(tenant: Tenant, times: int, status: int) -> None:
    for _ in range(times):
        assert (await tenant.chat(max_tokens=10)).status == status


async def test_dead_provider_is_told_of_with_its_reason_until_a_call_succeeds(
    lived: House, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    connection = await lived.connect(scripted)
    tenant = await lived.tenant("plus")
    assert await lived.client.breakers() == []
    gone = wire.ProviderChange(base_url="http://127.0.0.1:9/v1")
    await lived.client.change_provider(connection, gone)
    began_at = clock.now_at()
    await _failed(tenant, 1, 503)
    [first] = await lived.client.breakers()
    assert (first.provider, first.model) == (connection, f"{connection}/{MODEL}")
    assert (first.state, first.why, first.since_at) == ("failing", "unreachable", began_at)
    clock.advance(5)
    await _failed(tenant, FAILURES - 1, 503)
    turned_away = await tenant.chat(max_tokens=10)
    assert turned_away.headers["x-alcove-reason"] == "provider_resting"
    [opened] = await lived.client.breakers()
    assert (opened.state, opened.failures, opened.passed_over) == ("open", FAILURES, 1)
    assert (opened.since_at, opened.last_at) == (began_at, clock.now_at())
    assert opened.probe_at == clock.now_at() + 60_000
    assert opened.payer == "operator"
    await lived.client.change_provider(connection, wire.ProviderChange(base_url=scripted.url))
    assert (await lived.client.probe_provider(connection)).ok
    [waiting] = await lived.client.breakers()
    assert (waiting.state, waiting.probe_at) == ("half_open", None), "a passed test ends the rest"
    scripted.then(reply=s.text("back again"))
    await _failed(tenant, 1, 200)
    await lived.entries(tenant, FAILURES + 1)
    assert await lived.client.breakers() == []


async def test_calls_that_failed_are_listed_with_their_reason_and_found_by_themselves(
    lived: House, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    connection = await lived.connect(scripted)
    tenant, other = await lived.tenant("plus"), await lived.tenant("plus")
    scripted.then(reply=s.text("well"))
    scripted.then(reply=s.error(503))
    scripted.then(reply=s.text("some words ", s.StreamError()))
    await tenant.chat(max_tokens=10)
    clock.advance(1)
    await tenant.chat(max_tokens=10)
    clock.advance(1)
    await tenant.chat(max_tokens=10, stream=True)
    clock.advance(1)
    gone = wire.ProviderChange(base_url="http://127.0.0.1:9/v1")
    await lived.client.change_provider(connection, gone)
    await tenant.chat(max_tokens=10)
    await other.chat(max_tokens=10)
    await lived.entries(tenant, 4)
    await lived.entries(other, 1)
    everything = await lived.client.requests(tenant=tenant.id)
    assert [(row.outcome, row.failure) for row in everything.rows] == [
        ("not_sent", "unreachable"),
        ("error", "overloaded_error"),
        ("provider_error", "http_503"),
        ("complete", None),
    ]
    assert [row.charge_nanos > 0 for row in everything.rows] == [False, True, False, True]
    assert all(row.model == f"{connection}/{MODEL}" for row in everything.rows)
    first = await lived.client.requests(tenant=tenant.id, failed=True, limit=2)
    rest = await lived.client.requests(tenant=tenant.id, failed=True, limit=2, before=first.next)
    assert [row.outcome for row in first.rows + rest.rows] == [
        "not_sent",
        "error",
        "provider_error",
    ]
    assert len((await lived.client.requests(failed=True)).rows) == 4
    detail = await lived.client.request(everything.rows[0].id)
    assert (detail.cost_nanos, detail.charge_nanos) == (0, 0)
    assert detail.entries[0].parts["failure"] == "unreachable"
    assert (await lived.verdict()).whole


async def test_unsent_call_takes_no_request_of_the_plan_and_is_none_in_reports(
    lived: House, scripted: ScriptedProvider, clock: FakeClock
) -> None:
    connection = await lived.connect(scripted)
    tenant = await lived.tenant("plus", requests_day=1)
    gone = wire.ProviderChange(base_url="http://127.0.0.1:9/v1")
    await lived.client.change_provider(connection, gone)
    await _failed(tenant, 2, 503)
    await lived.client.change_provider(connection, wire.ProviderChange(base_url=scripted.url))
    scripted.then(reply=s.text("well"))
    await _failed(tenant, 1, 200)
    assert (await tenant.chat(max_tokens=10)).status == 402, "the one that was sent is used up"
    await lived.entries(tenant, 3)
    now_at = clock.now_at()
    told = await lived.client.usage(from_at=now_at - 1000, to_at=now_at + 1000, group=())
    assert told.totals.requests == 1
    page = await lived.client.query_tenants(wire.TenantsQuery(ids=[tenant.id]))
    assert page.rows[0].requests_month == 1


@pytest.mark.parametrize("status", [401, 402, 403])
async def test_refused_key_of_ours_is_told_of_and_goes_on_being_tried(
    house: House, scripted: ScriptedProvider, status: int
) -> None:
    await house.connect(scripted)
    tenant = await house.tenant("plus")
    for _ in range(FAILURES + 1):
        scripted.then(reply=s.error(status))
    await _failed(tenant, FAILURES + 1, status)
    await house.entries(tenant, FAILURES + 1)
    [trouble] = await house.client.breakers()
    assert (trouble.state, trouble.failures) == ("failing", FAILURES + 1)
    assert trouble.why == f"http_{status}"


async def test_deleted_connection_has_no_troubles_any_more(
    house: House, scripted: ScriptedProvider
) -> None:
    connection = await house.connect(scripted)
    tenant = await house.tenant("plus")
    scripted.then(reply=s.error(500))
    await _failed(tenant, 1, 500)
    await house.entries(tenant, 1)
    assert len(await house.client.breakers()) == 1
    await house.client.delete_provider(connection)
    assert await house.client.breakers() == []
