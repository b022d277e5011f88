"""Credit and marks: given by admins with a reason, seen by the person."""

import re

import pytest
from sqlalchemy import select

from gateway import words
from gateway.models import audit
from metering_proxy import wire
from tests.gateway.browser import Browser
from tests.gateway.conftest import Gateway
from tests.waiting import until

pytestmark = pytest.mark.thorough

ADA = "ada@example.org"


async def _given(root: Browser, path: str, **fields: str) -> int:
    page = await root.visit(path)
    [grant] = re.findall(r'name="grant" value="([^"]+)"', page.text)
    answer = await root.submit(
        f"{path}/grants", grant=fields.pop("grant", grant), reason="promised by mail", **fields
    )
    return answer.status


async def test_credit_is_given_once_audited_and_seen_by_the_person(gateway: Gateway) -> None:
    root, ada = await gateway.admin(), await gateway.person(ADA)
    theirs = await gateway.tenant_of(ADA)
    path = f"/admin/tenants/{theirs}"
    page = await root.visit(path)
    [grant] = re.findall(r'name="grant" value="([^"]+)"', page.text)
    fields = {"amount_usd": "5", "note": "For the lost afternoon", "last_day": "2099-12-31"}
    assert await _given(root, path, grant=grant, **fields) == 303
    assert await _given(root, path, grant=grant, **fields) == 303, "sent twice"
    [kept] = gateway.meter.people.grants.values()
    assert (kept.amount_nanos, kept.kind, kept.tenant) == (5_000_000_000, "credit", theirs)
    assert kept.expires_at == 4_102_444_800_000, "the whole last day counts"
    shown = await ada.visit("/usage")
    assert "For the lost afternoon" in shown.text
    assert "$5.00" in shown.text
    assert "promised by mail" not in shown.text, "the reason is for the record"
    async with gateway.parts.db.read() as reading:
        rows = await reading.rows(select(audit).where(audit.c.action == "credit.given"))
    first = rows[0]
    assert (first["actor"], first["tenant"]) == ("admin@example.org", theirs)
    assert first["reason"] == "promised by mail"
    assert first["after"].startswith("$5.00 until ")


async def test_credit_is_refused_at_the_field_that_is_wrong(gateway: Gateway) -> None:
    root = await gateway.admin()
    await gateway.person(ADA)
    path = f"/admin/tenants/{await gateway.tenant_of(ADA)}"
    for wrong in (
        {"amount_usd": "a lot"},
        {"amount_usd": "0"},
        {"amount_usd": "-1"},
        {"amount_usd": "5", "last_day": "2020-01-01"},
        {"amount_usd": "5", "last_day": "some day"},
        {"amount_usd": "5", "last_day": "9999-12-31"},
        {"amount_usd": "5", "kind": "grace", "note": "nameless"},
        {"amount_usd": "5", "kind": "grace", "last_day": "2099-12-31"},
    ):
        assert await _given(root, path, **wrong) == 400, wrong
    page = await root.visit(path)
    [grant] = re.findall(r'name="grant" value="([^"]+)"', page.text)
    unsaid = await root.submit(f"{path}/grants", grant=grant, amount_usd="5", reason=" ")
    assert unsaid.status == 400
    assert gateway.meter.people.grants == {}


async def test_failed_gift_is_in_the_record_beside_its_attempt(gateway: Gateway) -> None:
    root = await gateway.admin()
    await gateway.person(ADA)
    path = f"/admin/tenants/{await gateway.tenant_of(ADA)}"
    page = await root.visit(path)
    [grant] = re.findall(r'name="grant" value="([^"]+)"', page.text)
    gateway.meter.away = True
    answer = await root.submit(f"{path}/grants", grant=grant, amount_usd="5", reason="why not")
    assert answer.status == 503
    async with gateway.parts.db.read() as reading:
        rows = await reading.rows(select(audit.c.action).order_by(audit.c.id))
    assert [row["action"] for row in rows][-2:] == ["credit.given", "credit.not_given"]


async def test_gift_in_doubt_is_given_once_when_its_form_is_sent_again(gateway: Gateway) -> None:
    root = await gateway.admin()
    await gateway.person(ADA)
    path = f"/admin/tenants/{await gateway.tenant_of(ADA)}"
    page = await root.visit(path)
    first = re.findall(r'name="grant" value="([^"]+)"', page.text)
    gateway.meter.away = True
    doubtful = await root.submit(f"{path}/grants", grant=first[0], amount_usd="5", reason="why not")
    again = re.findall(r'name="grant" value="([^"]+)"', doubtful.text)
    assert again == first
    gateway.meter.away = False
    assert await _given(root, path, grant=again[0], amount_usd="5") == 303
    assert await _given(root, path, grant=again[0], amount_usd="6") == 409
    assert list(gateway.meter.people.grants) == first


async def test_what_is_left_of_credit_is_taken_back(gateway: Gateway) -> None:
    root, ada = await gateway.admin(), await gateway.person(ADA)
    theirs = await gateway.tenant_of(ADA)
    path = f"/admin/tenants/{theirs}"
    await _given(root, path, amount_usd="5")
    [grant] = gateway.meter.people.grants
    other = await gateway.tenant_of("admin@example.org")
    stray = f"/admin/tenants/{other}/grants/{grant}/revocation"
    assert (await root.submit(stray, reason="mistaken")).status == 404
    back = await root.submit(f"{path}/grants/{grant}/revocation", reason="given twice")
    assert back.status == 303
    assert gateway.meter.people.grants[grant].revoked_at is not None
    shown = (await ada.visit("/usage")).text
    assert "Ended" in shown
    assert 'data-label="Given">$5.00</td>' in shown
    assert 'data-label="Left">$0</td>' in shown
    assert "given twice" in (await root.visit(path)).text


async def test_quota_of_nothing_promises_no_day_on_which_answers_begin_again(
    gateway: Gateway,
) -> None:
    root, ada = await gateway.admin(), await gateway.person(ADA)
    path = f"/admin/tenants/{await gateway.tenant_of(ADA)}"
    async with ada.stream() as stream:
        await until(lambda: stream.named("quota"))
        assert stream.named("quota")[-1]["none_given"] is False
        assert (await root.submit(f"{path}/quota", limit_usd="0", reason="paused")).status == 303
        await until(lambda: stream.named("quota")[-1]["none_given"])
    for page in (await ada.visit("/usage"), await root.visit(path)):
        assert "of $0</span>" in page.text
        assert "again <time" not in page.text
        assert "starts again" not in page.text.lower()
    assert "whoever runs this Alcove has to raise it" in (await ada.visit("/usage")).text


async def test_quota_is_not_out_while_credit_is_left(gateway: Gateway) -> None:
    root, ada = await gateway.admin(), await gateway.person(ADA)
    theirs = await gateway.tenant_of(ADA)
    gateway.meter.spend(theirs, "2026-01-01", "m", 1_000_000_000)
    async with ada.stream() as stream:
        await until(lambda: stream.named("quota"))
        assert stream.named("quota")[-1]["level"] == "out"
        await _given(root, f"/admin/tenants/{theirs}", amount_usd="2.50")
        await until(lambda: stream.named("quota")[-1]["level"] == "credit")
        assert stream.named("quota")[-1]["credit"] == "$2.50"
    assert "you go on with credit" in (await ada.visit("/usage")).text


async def test_highest_mark_of_a_window_is_told_in_stream_and_page(gateway: Gateway) -> None:
    ada = await gateway.person(ADA)
    theirs = await gateway.tenant_of(ADA)
    gateway.meter.people.marks[theirs] = [
        wire.Mark(kind="charge_month", starts_at=1, percent=50, at=2),
        wire.Mark(kind="charge_month", starts_at=1, percent=80, at=3),
        wire.Mark(kind="tokens_day", starts_at=1, percent=50, at=3),
    ]
    async with ada.stream() as stream:
        await until(lambda: stream.named("quota"))
        assert stream.named("quota")[-1]["mark"] == {
            "key": "charge_month.1.80",
            "text": "More than 80 % of this month's quota is used",
        }
    page = await ada.visit("/usage")
    assert "More than 80 % of this month&#39;s quota is used." in page.text
    assert "More than 50 % of today&#39;s tokens are used." in page.text
    assert "50 % of this month" not in page.text


async def test_calls_with_an_own_key_stand_apart_and_charge_nothing(gateway: Gateway) -> None:
    ada = await gateway.person(ADA)
    theirs = await gateway.tenant_of(ADA)
    day = words.moment(gateway.parts.clock.now_at()).date().isoformat()
    gateway.meter.spend(theirs, day, "openai/gpt-5", 300_000_000)
    gateway.meter.spend(theirs, day, "anthropic/claude", 120_000_000, payer="tenant")
    page = await ada.visit("/usage")
    own = page.text.index("What did you pay yourself?")
    assert "anthropic/claude" in page.text[own:]
    assert "anthropic/claude" not in page.text[:own]
    assert "$0.12" in page.text[own:]
    assert "$0.42" not in page.text, "what she paid herself is no part of the charge"
