"""The audit over all tenants: found by who did it, by whom it was about and by the sort of act, page by page."""

import re

import pytest

from gateway.tenants import audit
from gateway.tenants.audit import Actor
from infra.kit import ids
from metering_proxy import wire
from tests.gateway.conftest import Gateway
from tests.waiting import until

pytestmark = pytest.mark.thorough

ADA = "ada@example.org"
OTHER = Actor("other", "other.keeper@example.org", "203.0.113.9")
NOTED_AT = 1_700_000_000_000


async def _write(gateway: Gateway, action: str, **told: str | None) -> None:
    """One row, later than all before it: rows of one millisecond stand in no order."""
    clock = gateway.parts.clock
    asked_at = clock.now_at()
    await until(lambda: clock.now_at() > asked_at)
    async with gateway.parts.db.transaction() as tx:
        await audit.write(tx, OTHER, action, **told)


def _rows(text: str) -> list[str]:
    body = text.partition("<tbody>")[2].partition("</tbody>")[0]
    return [re.sub(r"<[^>]+>|\s+", " ", row) for row in body.split("</tr>")[:-1]]


async def test_acts_of_all_tenants_stand_with_who_whom_why_and_what_was_before(
    gateway: Gateway,
) -> None:
    root = await gateway.admin()
    await gateway.person(ADA)
    hers = await gateway.tenant_of(ADA)
    await root.submit(f"/admin/tenants/{hers}/plan", plan="plus", reason="She <asked> for it")
    await _write(gateway, "provider.connected", after="OpenAI (openai)")
    await _write(gateway, "something.new", tenant="a" * 16)
    page = await root.visit("/admin/audit")
    newest, house, plan = _rows(page.text)[:3]
    assert "something.new" in newest, "an act that has no name yet is shown all the same"
    assert "Provider connected" in house
    assert "OpenAI (openai)" in house
    assert "other.keeper@example.org" in house
    assert "203.0.113.9" in house
    assert "the house" in house
    for said in ("Plan changed", "free", "plus", "She &lt;asked&gt; for it", ADA, "admin@"):
        assert said in plan, said
    assert f'href="/admin/tenants/{hers}"' in page.text


async def test_audit_is_narrowed_by_person_and_by_act(gateway: Gateway) -> None:
    root = await gateway.admin()
    await gateway.person(ADA)
    hers = await gateway.tenant_of(ADA)
    await _write(gateway, "plan.changed", tenant=hers, after="plus")
    await _write(gateway, "quota.changed", tenant="b" * 16, after="$5.00")
    about = _rows((await root.visit(f"/admin/audit?q={ADA}")).text)
    assert [("Plan changed" in row) for row in about] == [True]
    assert _rows((await root.visit(f"/admin/audit?q={hers}")).text) == about
    by_actor = _rows((await root.visit("/admin/audit?q=OTHER.keeper")).text)
    assert len(by_actor) == 2
    acts = _rows((await root.visit("/admin/audit?act=quota.changed")).text)
    assert len(acts) == 1
    assert "$5.00" in acts[0]
    both = await root.visit(f"/admin/audit?q={ADA}&act=quota.changed")
    assert "Nothing matches" in both.text
    assert "Nothing matches" in (await root.visit("/admin/audit?q=%25")).text, "no wild card"


async def test_pages_of_the_audit_miss_and_repeat_none(gateway: Gateway) -> None:
    root = await gateway.admin()
    for n in range(audit.PAGE + 5):
        await _write(gateway, "plan.changed", after=f"number {n:03d}")
    first = (await root.visit("/admin/audit?act=plan.changed")).text
    onward = re.search(r'href="/admin/audit\?(act=plan.changed&amp;before=\w+)"', first)
    assert onward is not None
    second = (await root.visit(f"/admin/audit?{onward[1].replace('&amp;', '&')}")).text
    found = re.findall(r"number \d{3}", first) + re.findall(r"number \d{3}", second)
    assert sorted(found) == [f"number {n:03d}" for n in range(audit.PAGE + 5)]
    assert "Older" not in second
    assert "Newest" in second
    assert (await root.visit("/admin/audit?before=nonsense")).status == 303


async def test_what_the_meter_noted_is_found_there_too(gateway: Gateway) -> None:
    root = await gateway.admin()
    await gateway.person(ADA)
    hers = await gateway.tenant_of(ADA)
    for tenant, what in (
        (hers, "stranger_key"),
        ("c" * 16, "quota_override"),
        ("c" * 16, "new_one"),
    ):
        note = wire.AuditRow(id=ids.ulid(), at=NOTED_AT, tenant=tenant, what=what, detail="{<b>}")
        gateway.meter.people.audit.insert(0, note)
    every = _rows((await root.visit("/admin/audit?by=meter")).text)
    assert len(every) == 3
    assert "new one" in every[0]
    assert "Limits set by hand" in every[1]
    assert "Key shown at another tenant" in every[2]
    assert "{&lt;b&gt;}" in every[2]
    mine = await root.visit(f"/admin/audit?by=meter&q={ADA}")
    assert len(_rows(mine.text)) == 1
    nobody = await root.visit("/admin/audit?by=meter&q=nobody@example.org")
    assert "Nobody has this address." in nobody.text
    gateway.meter.away = True
    away = await root.visit("/admin/audit?by=meter")
    assert (away.status, "does not answer just now" in away.text) == (200, True)
    assert (await root.visit("/admin/audit")).status == 200
