"""What admins see and do, and that nobody else can."""

import re
from pathlib import Path

import pytest
from sqlalchemy import select

from gateway.accounts import admin_links
from gateway.accounts.sessions import Visitor
from gateway.models import audit, tenant
from infra.kit.clock import FakeClock
from tests.gateway.browser import PASSWORD
from tests.gateway.conftest import Gateway, Serve
from tests.gateway.routes import walk
from tests.waiting import until

pytestmark = pytest.mark.thorough


async def _audit(gateway: Gateway) -> list[tuple[str, str | None, str | None, str | None]]:
    async with gateway.parts.db.read() as reading:
        rows = await reading.rows(select(audit).order_by(audit.c.id))
    return [(r["action"], r["reason"], r["before"], r["after"]) for r in rows]


async def test_admin_pages_do_not_exist_for_others(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    theirs = await gateway.tenant_of("ada@example.org")
    walked = 0
    for method, path in walk(gateway.app):
        if not path.startswith("/admin"):
            continue
        target = re.sub(r"\{\w+\}", theirs, path)
        answer = await (ada.visit(target) if method == "GET" else ada.submit(target, reason="x"))
        assert answer.status == 404, (method, path, answer.status)
        walked += 1
    assert walked >= 17


async def test_setup_link_works_once_and_for_fifteen_minutes(serve: Serve) -> None:
    clock = FakeClock()
    gateway = await serve(clock=clock)

    async def link() -> str:
        async with gateway.parts.db.transaction() as tx:
            return f"/setup/{(await admin_links.make(tx, gateway.parts.limits)).token}"

    first, second = await link(), await link()
    browser = gateway.browser()
    retired = await browser.visit(first)
    assert 'name="password"' not in retired.text, "a new link retires the last"
    await browser.visit(second)
    weak = await browser.submit(second, email="root@example.org", password="weak")
    assert weak.status == 400
    done = await browser.submit(second, email="root@example.org", password=PASSWORD)
    assert (done.status, done.location) == (303, "/admin/providers")
    other = gateway.browser()
    await other.visit(second)
    again = await other.submit(second, email="eve@example.org", password=PASSWORD)
    assert again.status == 409
    third = await link()
    clock.advance(15 * 60)
    late = await other.submit(third, email="eve@example.org", password=PASSWORD)
    assert late.status == 409
    assert (await other.visit("/setup/never-was")).status == 404
    assert [row[0] for row in await _audit(gateway)] == ["admin.made"]


async def test_setup_link_makes_an_admin_only_of_who_owns_the_account(gateway: Gateway) -> None:
    await gateway.person("ada@example.org")
    async with gateway.parts.db.transaction() as tx:
        path = f"/setup/{(await admin_links.make(tx, gateway.parts.limits)).token}"
    browser = gateway.browser()
    await browser.visit(path)
    wrong = await browser.submit(path, email="ada@example.org", password="another password")
    assert wrong.status == 401
    right = await browser.submit(path, email="ada@example.org", password=PASSWORD)
    assert right.status == 303
    assert (await browser.visit("/admin/tenants")).status == 200


async def test_plan_is_changed_heard_and_audited(gateway: Gateway) -> None:
    root = await gateway.admin()
    await gateway.person("ada@example.org")
    theirs = await gateway.tenant_of("ada@example.org")
    path = f"/admin/tenants/{theirs}"
    assert (await root.submit(f"{path}/plan", plan="plus", reason="  ")).status == 400
    assert (await root.submit(f"{path}/plan", plan="gold", reason="why not")).status == 400
    answer = await root.submit(f"{path}/plan", plan="plus", reason="paid by letter")
    assert (answer.status, answer.location) == (303, path)
    assert gateway.meter.tenants[theirs].plan == "plus"
    assert gateway.spawner.of(theirs).plan == "plus"
    assert ("plan.changed", "paid by letter", "free", "plus") in await _audit(gateway)
    page = await root.visit(path)
    assert "The plan is changed." in page.text
    assert "paid by letter" in page.text
    assert "Plan changed" in page.text


async def test_page_after_a_change_of_quota_shows_the_new_one(gateway: Gateway) -> None:
    root = await gateway.admin()
    await gateway.person("ada@example.org")
    path = f"/admin/tenants/{await gateway.tenant_of('ada@example.org')}"
    assert "of $1.00</span>" in (await root.visit(path)).text
    assert (await root.submit(f"{path}/quota", limit_usd="5", reason="a friend")).status == 303
    assert "of $5.00</span>" in (await root.visit(path)).text


async def test_quota_is_set_by_hand_and_given_back(gateway: Gateway) -> None:
    root = await gateway.admin()
    ada = await gateway.person("ada@example.org")
    theirs = await gateway.tenant_of("ada@example.org")
    path = f"/admin/tenants/{theirs}/quota"
    for bad in ("-1", "a lot", "1e9", "99999999", "0.1234567891"):
        assert (await root.submit(path, limit_usd=bad, reason="x")).status == 400
    async with ada.stream() as stream:
        await until(lambda: stream.named("quota"))
        assert (await root.submit(path, limit_usd="5", reason="a friend")).status == 303
        await until(lambda: stream.named("quota")[-1]["limit"] == "$5.00")
        kept = gateway.meter.tenants[theirs]
        assert kept.quota.charge_month_nanos == 5_000_000_000
        assert (await root.submit(path, limit_usd="", reason="over")).status == 303
        await until(lambda: stream.named("quota")[-1]["limit"] == "$1.00")
    assert ("quota.changed", "a friend", "the plan's own", "$5.00") in await _audit(gateway)


async def test_suspension_acts_in_its_order(gateway: Gateway) -> None:
    root = await gateway.admin()
    ada = await gateway.person("ada@example.org")
    theirs = await gateway.tenant_of("ada@example.org")
    await ada.api("POST", "/api/wake", {"reason": "page"})
    order: list[str] = []
    gateway.meter.calls, gateway.spawner.calls = order, order
    async with ada.stream() as stream:
        await until(lambda: stream.named("quota"))
        order.clear()
        answer = await root.submit(f"/admin/tenants/{theirs}/suspension", reason="spam")
        assert answer.status == 303
        await until(lambda: stream.ended, timeout_s=2)
        assert stream.named("signed_out")[0]["reason"] == "suspended"
    meter = next(n for n, call in enumerate(order) if call.startswith(f"tenant {theirs}"))
    assert meter < order.index(f"suspend {theirs}")
    assert gateway.meter.tenants[theirs].status == "suspended"
    assert gateway.spawner.of(theirs).state == "stopped"
    assert (await ada.api("GET", "/api/session")).status == 401
    refused = await gateway.browser().sign_in("ada@example.org")
    assert refused.status == 403
    assert "suspended" in refused.text
    wrong = await gateway.browser().sign_in("ada@example.org", "not the password")
    assert wrong.status == 401, "only who knows the password is told"
    assert (await root.submit(f"/admin/tenants/{theirs}/resumption", reason="sorry")).status == 303
    assert (await gateway.browser().sign_in("ada@example.org")).status == 303
    assert gateway.meter.tenants[theirs].status == "active"
    assert not gateway.spawner.of(theirs).suspended


async def test_suspension_holds_when_other_rooms_are_away(gateway: Gateway) -> None:
    root = await gateway.admin()
    ada = await gateway.person("ada@example.org")
    theirs = await gateway.tenant_of("ada@example.org")
    gateway.meter.away = gateway.spawner.away = True
    answer = await root.submit(f"/admin/tenants/{theirs}/suspension", reason="spam")
    assert answer.status == 303
    assert (await ada.api("GET", "/api/session")).status == 401
    assert "will hear of this" in (await root.visit(f"/admin/tenants/{theirs}")).text
    gateway.meter.away = gateway.spawner.away = False
    await until(lambda: gateway.spawner.of(theirs).suspended)
    await until(
        lambda: (heard := gateway.meter.tenants.get(theirs)) and heard.status == "suspended"
    )


async def test_admin_cannot_lock_themselves_out(gateway: Gateway) -> None:
    root = await gateway.admin()
    own = await gateway.tenant_of("admin@example.org")
    assert (await root.submit(f"/admin/tenants/{own}/suspension", reason="x")).status == 409
    assert (await root.visit("/admin/tenants")).status == 200


async def test_instance_is_woken_and_stopped(gateway: Gateway) -> None:
    root = await gateway.admin()
    await gateway.person("ada@example.org")
    theirs = await gateway.tenant_of("ada@example.org")
    path = f"/admin/tenants/{theirs}/instance"
    assert (await root.submit(path, action="wake")).status == 303
    assert gateway.spawner.of(theirs).state == "ready"
    assert (await root.submit(path, action="stop")).status == 303
    assert gateway.spawner.of(theirs).state == "stopped"
    assert (await root.submit(path, action="explode")).status == 400


async def test_tenants_are_listed_by_the_room_that_owns_the_column(gateway: Gateway) -> None:
    root = await gateway.admin("zoe@example.org")
    spent = {"ada": 300, "bob": 100, "cid": 200}
    for name, charge in spent.items():
        await gateway.person(f"{name}@example.org")
        theirs = await gateway.tenant_of(f"{name}@example.org")
        gateway.meter.spend(theirs, "2026-01-01", "m", charge * 10_000_000)
    bob = await gateway.tenant_of("bob@example.org")
    await gateway.spawner._wake(bob)

    async def order(query: str) -> list[str]:
        text = (await root.visit(f"/admin/tenants?{query}")).text
        return re.findall(r">(\w+)@example\.org</a>", text)

    assert await order("sort=email&order=asc") == ["ada", "bob", "cid", "zoe"]
    assert await order("sort=charge_month&order=desc") == ["ada", "cid", "bob", "zoe"]
    assert await order("sort=charge_today&order=asc") == ["zoe", "bob", "cid", "ada"]
    assert (await order("sort=state&order=desc"))[0] == "bob"
    assert await order("state=ready") == ["bob"]
    assert sorted(await order("state=absent")) == ["ada", "cid", "zoe"]
    assert await order("q=CID") == ["cid"]
    assert await order("q=%25") == []
    assert await order("plan=plus") == []
    assert await order("status=suspended") == []
    page = (await root.visit("/admin/tenants?q=a&sort=nonsense&page=zero&order=up")).text
    assert "$3.00" in page
    partial = await root.send(
        "GET", "/admin/tenants?q=bob", headers={"hx-request": "true", "accept": "text/html"}
    )
    assert "<html" not in partial.text
    assert "bob@example.org" in partial.text


async def test_pages_of_tenants_miss_and_repeat_nobody(gateway: Gateway) -> None:
    root = await gateway.admin("zoe@example.org")
    for n in range(59):
        await gateway.parts.doors.sign_up(f"p{n}@example.org", PASSWORD, Visitor("10.0.0.1", ""))
    for sort in ("created", "email", "plan", "last_seen", "charge_month", "state"):
        seen: list[str] = []
        for page in (1, 2, 3):
            text = (await root.visit(f"/admin/tenants?sort={sort}&page={page}")).text
            assert "60 that match" in text
            seen += re.findall(r">(\w+)@example\.org</a>", text)
        assert len(seen) == len(set(seen)) == 60, sort


@pytest.mark.parametrize("number", ["0", "-1", "1e3", "1000000", "9" * 4400])
async def test_first_page_of_tenants_is_shown_when_the_number_is_none(
    gateway: Gateway, number: str
) -> None:
    admin = await gateway.admin()
    answer = await admin.visit(f"/admin/tenants?page={number}")
    assert answer.status == 200
    assert "admin@example.org" in answer.text


async def test_tenants_are_listed_when_other_rooms_are_away(gateway: Gateway) -> None:
    root = await gateway.admin("zoe@example.org")
    gateway.meter.away = gateway.spawner.away = True
    for query in ("", "sort=charge_month", "sort=state"):
        page = await root.visit(f"/admin/tenants?{query}")
        assert page.status == 200
        assert "zoe@example.org" in page.text
        assert "does not answer" in page.text
    own = await gateway.tenant_of("zoe@example.org")
    for path in (f"/admin/tenants/{own}", "/admin/spend", "/admin/host", "/admin/providers"):
        page = await root.visit(path)
        assert (page.status, "does not answer" in page.text) == (200, True), path
    assert (await root.visit("/usage")).status == 200


async def test_spend_shows_days_models_and_the_dearest(serve: Serve, tmp_path: Path) -> None:
    clock = FakeClock()  # 1 January 2026
    gateway = await serve(clock=clock)
    root = await gateway.admin("zoe@example.org")
    own = await gateway.tenant_of("zoe@example.org")
    gateway.meter.spend(own, "2026-01-01", "model/a", 2_500_000_000)
    page = await root.visit("/admin/spend?days=7")
    assert "model/a" in page.text
    assert "$2.50" in page.text
    assert "zoe@example.org" in page.text


async def test_host_page_names_the_probe_that_failed(gateway: Gateway) -> None:
    root = await gateway.admin()
    page = await root.visit("/admin/host")
    assert "processes give no wall" in page.text
    assert "None answers." in page.text


async def test_last_seen_moves_when_the_person_comes(serve: Serve) -> None:
    clock = FakeClock()
    gateway = await serve(clock=clock)
    ada = await gateway.person("ada@example.org")
    clock.advance(3600)
    await ada.visit("/usage")
    async with gateway.parts.db.read() as reading:
        assert await reading.value(select(tenant.c.last_seen_at)) == clock.now_at()
