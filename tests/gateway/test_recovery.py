"""The way back for who has forgotten their password."""

from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import select

from gateway.accounts import recovery
from gateway.accounts.passwords import Passwords
from gateway.accounts.sessions import Visitor
from gateway.models import audit, password_link
from gateway.tenants.audit import Actor
from infra.kit.clock import FakeClock
from infra.kit.errors import AlcoveError
from tests.gateway.browser import PASSWORD
from tests.gateway.conftest import Gateway, Serve
from tests.waiting import until

pytestmark = pytest.mark.thorough

ADA, NEW = "ada@example.org", "quite another set of words"


async def _link(gateway: Gateway, email: str = ADA) -> str:
    """A link as the command line makes it."""
    async with gateway.parts.db.transaction() as tx:
        made = await recovery.make(tx, Actor(None, "test"), email, "asked", gateway.parts.limits)
    return f"/password/{made.token}"


async def test_link_sets_the_password_once_and_ends_every_session(gateway: Gateway) -> None:
    ada = await gateway.person(ADA)
    path = await _link(gateway)
    elsewhere = gateway.browser()
    assert ADA in (await elsewhere.visit(path)).text
    assert (await ada.visit("/account")).status == 200, "opening a link changes nothing"
    assert (await elsewhere.submit(path, password="short")).status == 400
    async with ada.stream() as stream:
        await until(lambda: stream.frames)
        done = await elsewhere.submit(path, password=NEW)
        assert (done.status, done.location) == (303, "/account")
        await until(lambda: stream.ended)
    assert (await ada.api("GET", "/api/session")).status == 401
    assert (await elsewhere.visit("/account")).status == 200
    again = await gateway.browser().visit(path)
    assert 'name="password"' not in again.text
    assert ADA not in again.text
    assert (await gateway.browser().sign_in(ADA)).status == 401
    assert (await gateway.browser().sign_in(ADA, NEW)).status == 303


async def test_used_link_sets_nothing_when_it_is_sent_again(gateway: Gateway) -> None:
    await gateway.person(ADA)
    path = await _link(gateway)
    thief = gateway.browser()
    await thief.visit(path)
    first = gateway.browser()
    await first.visit(path)
    assert (await first.submit(path, password=NEW)).status == 303
    assert (await thief.submit(path, password="words of a thief")).status == 409
    assert (await gateway.browser().sign_in(ADA, NEW)).status == 303


async def test_link_is_good_for_an_hour_and_for_no_longer_than_a_newer_one(serve: Serve) -> None:
    clock = FakeClock()
    gateway = await serve(clock=clock)
    await gateway.person(ADA)
    first, second = await _link(gateway), await _link(gateway)
    browser = gateway.browser()
    await browser.visit(second)
    assert (await browser.submit(first, password=NEW)).status == 409
    clock.advance(3599)
    assert 'name="password"' in (await browser.visit(second)).text
    clock.advance(1)
    assert (await browser.submit(second, password=NEW)).status == 409
    assert (await browser.visit("/password/never-was")).status == 404
    assert (await gateway.browser().sign_in(ADA)).status == 303


async def test_link_is_retired_when_the_person_changes_the_password(gateway: Gateway) -> None:
    ada = await gateway.person(ADA)
    path = await _link(gateway)
    await ada.submit("/account/password", current=PASSWORD, password=NEW)
    browser = gateway.browser()
    await browser.visit("/sign-in")
    assert (await browser.submit(path, password="words of a thief")).status == 409


async def test_link_opens_nothing_while_the_account_is_suspended(gateway: Gateway) -> None:
    root = await gateway.admin()
    await gateway.person(ADA)
    theirs = await gateway.tenant_of(ADA)
    path = await _link(gateway)
    await root.submit(f"/admin/tenants/{theirs}/suspension", reason="spam")
    browser = gateway.browser()
    await browser.visit(path)
    assert (await browser.submit(path, password=NEW)).status == 403
    await root.submit(f"/admin/tenants/{theirs}/resumption", reason="sorry")
    assert (await browser.submit(path, password=NEW)).status == 303


class _Interrupted(Passwords):
    """Something happens while the password is being hashed."""

    def __init__(self, happens: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self._happens = happens

    async def hash(self, password: str) -> str:
        await self._happens()
        return "a hash"


async def test_link_stays_good_when_the_account_is_suspended_while_it_is_used(
    gateway: Gateway,
) -> None:
    await gateway.person(ADA)
    parts, theirs, path = gateway.parts, await gateway.tenant_of(ADA), await _link(gateway)
    suspending = _Interrupted(
        lambda: parts.administration.suspend(Actor(None, "test"), theirs, "spam")
    )
    racing = recovery.Recovery(parts.db, suspending, parts.limits)
    token = path.rpartition("/")[2]
    with pytest.raises(AlcoveError) as refused:
        await racing.redeem(token, NEW, Visitor("127.0.0.1", "test"))
    assert refused.value.reason == "suspended"
    assert (await racing.look(token)).state == "ready"


async def test_admin_makes_a_link_that_is_shown_once_hashed_and_audited(gateway: Gateway) -> None:
    root = await gateway.admin()
    await gateway.person(ADA)
    theirs = await gateway.tenant_of(ADA)
    address = f"/admin/tenants/{theirs}/password-links"
    assert (await root.submit(address, reason=" ")).status == 400
    shown = await root.submit(address, reason="called from her own number")
    assert shown.status == 200
    start = shown.text.index("/password/")
    path = shown.text[start : shown.text.index('"', start)]
    assert path not in (await root.visit(f"/admin/tenants/{theirs}")).text
    async with gateway.parts.db.read() as reading:
        rows = str([dict(row) for row in await reading.rows(select(password_link))])
        acts = [
            (row["actor"], row["action"], row["tenant"], row["reason"])
            for row in await reading.rows(select(audit))
        ]
    token = path.rpartition("/")[2]
    assert token not in rows
    made = ("admin@example.org", "password_link.made", theirs, "called from her own number")
    assert made in acts
    browser = gateway.browser()
    await browser.visit(path)
    assert (await browser.submit(path, password=NEW)).status == 303
    async with gateway.parts.db.read() as reading:
        used = await reading.row(select(audit).where(audit.c.action == "password.set_by_link"))
    assert used is not None
    assert (used["actor"], used["tenant"]) == (ADA, theirs)
