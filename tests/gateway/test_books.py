"""The administration's pages about money: calls, exports, prices, corrections, chains; and marks in the list."""

import pytest
from sqlalchemy import select

from gateway.models import audit
from metering_proxy import wire
from tests.gateway.conftest import Gateway
from tests.waiting import until

pytestmark = pytest.mark.thorough

ADA = "ada@example.org"


async def _audited(gateway: Gateway, action: str) -> list[tuple[str | None, str | None]]:
    async with gateway.parts.db.read() as reading:
        rows = await reading.rows(select(audit).where(audit.c.action == action))
    return [(row["reason"], row["after"]) for row in rows]


async def test_calls_are_found_by_number_by_person_and_page_by_page(gateway: Gateway) -> None:
    root = await gateway.admin()
    await gateway.person(ADA)
    theirs, own = await gateway.tenant_of(ADA), await gateway.tenant_of("admin@example.org")
    for _ in range(51):
        gateway.meter.books.called(own)
    hers = gateway.meter.books.called(theirs, payer="tenant", charge_nanos=0, outcome="left")
    page = await root.visit("/admin/requests")
    assert page.text.count('href="/admin/requests/01') == 50
    assert "own key" in page.text
    older = page.text.split("before=")[1].split('"')[0]
    last = await root.visit(f"/admin/requests?before={older}")
    assert last.text.count('href="/admin/requests/01') == 2
    of_hers = await root.visit(f"/admin/requests?q={ADA}")
    assert of_hers.text.count('href="/admin/requests/01') == 1
    found = await root.visit(f"/admin/requests?q={hers.id}")
    assert (found.status, found.location) == (303, f"/admin/requests/{hers.id}")
    unknown = await root.visit("/admin/requests?q=nobody@example.org")
    assert "Nobody has this address" in unknown.text
    assert hers.id not in unknown.text
    assert (await root.visit("/admin/requests?before=nonsense")).status == 303


async def test_call_is_shown_in_every_detail(gateway: Gateway) -> None:
    root = await gateway.admin()
    own = await gateway.tenant_of("admin@example.org")
    call = gateway.meter.books.called(own)
    page = await root.visit(f"/admin/requests/{call.id}")
    for said in (
        "openai/gpt-5",
        "$0.00024",
        "$0.00004 from credit",
        "2.5 s",
        "sent after 100 ms",
        "$0.0009",
        "openai/gpt-5@2026-01-01",
        "admin@example.org",
    ):
        assert said in page.text, said
    assert (await root.visit("/admin/requests/nothing")).status == 404
    assert (await root.visit("/admin/requests/" + "0" * 26)).status == 404


@pytest.mark.parametrize(("form", "kind"), [("csv", "text/csv"), ("jsonl", "application/x-ndjson")])
async def test_entries_are_exported_and_who_took_them_is_written_down(
    gateway: Gateway, form: str, kind: str
) -> None:
    root = await gateway.admin()
    own = await gateway.tenant_of("admin@example.org")
    page = await root.visit(f"/admin/spend/export?days=7&format={form}&tenant={own}")
    assert page.status == 200
    assert page.headers["content-type"].startswith(kind)
    assert page.headers["content-disposition"].startswith("attachment;")
    assert "240000" in page.text
    [asked] = gateway.meter.books.exported
    assert (asked["format"], asked["tenant"]) == (form, own)
    assert int(asked["to_at"]) - int(asked["from_at"]) <= 7 * 86_400_000
    assert await _audited(gateway, "entries.exported") == [(None, f"7 days, {form}")]
    assert (await root.visit("/admin/spend/export?tenant=x")).status == 404


async def test_export_says_so_when_the_meter_is_away(gateway: Gateway) -> None:
    root = await gateway.admin()
    gateway.meter.away = True
    answer = await root.visit("/admin/spend/export")
    assert answer.status == 503
    assert await _audited(gateway, "entries.exported") == []


async def test_spend_is_told_by_provider_and_payer(gateway: Gateway) -> None:
    root = await gateway.admin()
    own = await gateway.tenant_of("admin@example.org")
    gateway.meter.spend(own, "2026-01-01", "openai/gpt-5", 2_000_000_000)
    gateway.meter.spend(own, "2026-01-01", "anthropic/claude", 500_000_000, payer="tenant")
    page = await root.visit("/admin/spend")
    assert "The person, with their own key" in page.text
    assert page.text.count("$0.50") == 1, "in that row, and in no cost of the house"
    assert "$2.50" not in page.text
    tenant = await root.visit(f"/admin/tenants/{own}")
    assert "1 call with the person's own key, about $0.50" in tenant.text
    assert "$2.50" not in tenant.text


async def test_prices_and_plans_are_shown(gateway: Gateway) -> None:
    root = await gateway.admin()
    page = await root.visit("/admin/prices")
    assert "openai/gpt-5" in page.text
    assert "$1.25" in page.text
    assert "Plus" in page.text
    gateway.meter.away = True
    assert "does not answer" in (await root.visit("/admin/prices")).text


async def test_correction_is_tried_before_it_is_entered_with_a_reason(gateway: Gateway) -> None:
    root = await gateway.admin()
    await gateway.person(ADA)
    theirs = await gateway.tenant_of(ADA)
    days = {"from_day": "2026-01-01", "to_day": "2026-01-31", "whose": ADA}
    tried = await root.submit("/admin/prices/corrections", step="try", **days)
    assert "3 of 7 calls would be corrected" in tried.text
    [asked] = gateway.meter.books.corrections
    assert asked.dry_run
    assert asked.tenant == theirs
    assert asked.to_at - asked.from_at == 31 * 86_400_000
    unsaid = await root.submit("/admin/prices/corrections", step="enter", reason=" ", **days)
    assert unsaid.status == 400
    assert len(gateway.meter.books.corrections) == 1
    entered = await root.submit(
        "/admin/prices/corrections", step="enter", reason="wrong since the new year", **days
    )
    assert entered.status == 303
    assert not gateway.meter.books.corrections[-1].dry_run
    [(reason, what)] = await _audited(gateway, "prices.corrected")
    assert reason == "wrong since the new year"
    assert what is not None
    assert what.startswith("every model, 1 January 2026")


@pytest.mark.parametrize(
    "wrong",
    [
        {"from_day": "", "to_day": "2026-01-31"},
        {"from_day": "2026-01-31", "to_day": "2026-01-01"},
        {"from_day": "0001-01-01", "to_day": "2026-01-01"},
        {"from_day": "2026-01-01", "to_day": "9999-12-31"},
        {"from_day": "2026-01-01", "to_day": "2026-01-31", "whose": "nobody@example.org"},
    ],
)
async def test_correction_of_no_days_is_refused(gateway: Gateway, wrong: dict[str, str]) -> None:
    root = await gateway.admin()
    answer = await root.submit("/admin/prices/corrections", step="try", **wrong)
    assert answer.status == 400
    assert gateway.meter.books.corrections == []


async def test_chain_is_set_refused_and_removed(gateway: Gateway) -> None:
    root = await gateway.admin()
    path = "/admin/fallbacks"
    saved = await root.submit(path, name="openai/gpt-5", targets="anthropic/claude\r\nlocal/x\r\n")
    assert saved.status == 303
    assert gateway.meter.books.chains == {"openai/gpt-5": ["anthropic/claude", "local/x"]}
    refused = await root.submit(path, name="openai/gpt-5", targets="no/such")
    assert refused.status == 400
    assert "There is no model no/such." in refused.text
    for name in ("", "a b", "a?b", "é", "../providers"):
        answer = await root.submit(path, name=name, targets="local/x")
        assert answer.status == 400, name
    await root.submit(path, name="openai/gpt-5", targets="")
    assert gateway.meter.books.chains == {}
    changed = await _audited(gateway, "fallback.changed")
    assert changed == [
        (None, "openai/gpt-5: anthropic/claude, local/x"),
        (None, "openai/gpt-5: nothing"),
    ]


async def test_tenants_past_a_mark_are_filtered_and_marked(gateway: Gateway) -> None:
    root = await gateway.admin()
    for name, percent in (("ada", 80), ("bob", 50)):
        await gateway.person(f"{name}@example.org")
        theirs = await gateway.tenant_of(f"{name}@example.org")
        mark = wire.Mark(kind="charge_month", starts_at=1, percent=percent, at=2)
        gateway.meter.people.marks[theirs] = [mark]
    everyone = (await root.visit("/admin/tenants")).text
    assert "80 %</span>" in everyone
    past = (await root.visit("/admin/tenants?mark=80")).text
    assert "ada@example.org" in past
    assert "bob@example.org" not in past
    assert "bob@example.org" in (await root.visit("/admin/tenants?mark=50")).text
    assert ">admin@example.org</a>" not in (await root.visit("/admin/tenants?mark=50")).text


async def test_way_out_is_opened_with_a_reason_and_told_to_the_meter(gateway: Gateway) -> None:
    root, ada = await gateway.admin(), await gateway.person(ADA)
    theirs = await gateway.tenant_of(ADA)
    path = f"/admin/tenants/{theirs}"
    await until(lambda: theirs in gateway.meter.tenants)
    assert "nothing else can be reached" in (await ada.visit("/usage")).text
    assert "Closed: nothing but models" in (await root.visit(path)).text
    assert (await root.submit(f"{path}/egress", allowed="on", reason="")).status == 400
    assert not gateway.meter.tenants[theirs].egress
    assert (await root.submit(f"{path}/egress", allowed="on", reason="reads news")).status == 303
    assert gateway.meter.tenants[theirs].egress
    page = await root.visit(path)
    assert "may reach public addresses" in page.text
    assert "2.5 MB of 10 MB" in page.text
    assert "Yes, public addresses. Today 3 connections" in (await ada.visit("/usage")).text
    assert await _audited(gateway, "egress.changed") == [("reads news", "on")]
    await root.submit(f"{path}/plan", plan="plus", reason="paid")
    assert gateway.meter.tenants[theirs].egress, "another change does not close it"
    await root.submit(f"{path}/egress", allowed="off", reason="enough")
    assert not gateway.meter.tenants[theirs].egress
