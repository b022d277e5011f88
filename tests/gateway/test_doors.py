"""Getting in and out: what each door does, says, and does not say."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from argon2 import PasswordHasher
from sqlalchemy import func, select

from gateway.accounts import admin_links
from gateway.accounts.doors import Doors
from gateway.accounts.passwords import Passwords
from gateway.accounts.sessions import Visitor
from gateway.limits import Bucket
from gateway.models import account, session, tenant, tenant_change
from gateway.tenants.audit import Actor
from infra.kit.clock import FakeClock
from infra.kit.errors import AlcoveError
from tests.gateway.browser import ORIGIN, PASSWORD
from tests.gateway.conftest import Gateway, Serve, settings_for

VISITOR = Visitor("192.0.2.1", "a browser")


async def _count(gateway: Gateway, table: object) -> int:
    async with gateway.parts.db.read() as reading:
        found: int = await reading.value(select(func.count()).select_from(table))  # type: ignore[arg-type]
    return found


async def test_sign_up_makes_account_tenant_and_session_when_every_other_room_is_away(
    gateway: Gateway,
) -> None:
    gateway.meter.away = gateway.spawner.away = True
    ada = gateway.browser()
    await ada.visit("/sign-up")
    answer = await ada.submit("/sign-up", email=" Ada@Example.org ", password=PASSWORD)
    assert (answer.status, answer.location) == (303, "/chat")
    assert (await ada.visit("/account")).status == 200
    for table in (account, tenant, session):
        assert await _count(gateway, table) == 1
    assert await _count(gateway, tenant_change) == 2


@pytest.mark.parametrize(
    ("email", "password", "field"),
    [("no address", PASSWORD, "email"), ("a@b.example", "short", "password")],
)
async def test_sign_up_shows_the_form_again_when_something_is_wrong(
    gateway: Gateway, email: str, password: str, field: str
) -> None:
    ada = gateway.browser()
    await ada.visit("/sign-up")
    answer = await ada.submit("/sign-up", email=email, password=password)
    assert answer.status == 400
    assert 'aria-invalid="true"' in answer.text
    assert password not in answer.text
    assert email in answer.text
    assert await _count(gateway, account) == 0


async def test_sign_up_is_refused_when_the_address_is_taken(gateway: Gateway) -> None:
    await gateway.person("ada@example.org")
    other = gateway.browser()
    await other.visit("/sign-up")
    answer = await other.submit("/sign-up", email="ADA@example.org", password=PASSWORD + "x")
    assert answer.status == 409
    assert await _count(gateway, account) == 1
    assert (await other.visit("/account")).status == 303


async def test_sign_up_is_refused_when_it_is_closed(serve: Serve, tmp_path: Path) -> None:
    gateway = await serve(settings=settings_for(tmp_path, gateway_signup="closed"))
    ada = gateway.browser()
    assert (await ada.visit("/sign-up")).status == 200
    answer = await ada.submit("/sign-up", email="a@b.example", password=PASSWORD)
    assert answer.status == 403
    assert await _count(gateway, account) == 0


async def test_sign_in_says_the_same_when_the_address_or_the_password_is_wrong(
    gateway: Gateway,
) -> None:
    await gateway.person("ada@example.org")
    wrong, unknown = gateway.browser(), gateway.browser()
    first = await wrong.sign_in("ada@example.org", "not the password")
    second = await unknown.sign_in("eve@example.org", "not the password")
    assert first.status == second.status == 401

    def plain(text: str, browser_csrf: str, email: str) -> str:
        return text.replace(browser_csrf, "").replace(email, "")

    assert plain(first.text, wrong.csrf, "ada@example.org") == plain(
        second.text, unknown.csrf, "eve@example.org"
    )


async def test_sign_in_leads_where_the_person_wanted_to_go(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    stranger = gateway.browser()
    sent = await stranger.visit("/usage?a=b")
    assert (sent.status, sent.location) == (303, "/sign-in?next=/usage%3Fa%3Db")
    await stranger.visit("/sign-in")
    answer = await stranger.submit(
        "/sign-in", email="ada@example.org", password=PASSWORD, next="/usage?a=b"
    )
    assert answer.location == "/usage?a=b"
    again = gateway.browser()
    await again.visit("/sign-in?next=//evil.example")
    answer = await again.submit(
        "/sign-in", email="ada@example.org", password=PASSWORD, next="//evil.example"
    )
    assert answer.location == "/chat"
    assert (await ada.visit("/sign-in")).location == "/chat"


async def test_session_is_a_new_one_when_signing_in_again(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    before = {cookie.value for cookie in ada.jar if cookie.key == "alcove"}
    await ada.submit("/sign-out")
    stolen = gateway.browser()
    stolen.jar.update_cookies({"alcove": next(iter(before))})
    assert (await stolen.visit("/account")).status == 303
    await ada.sign_in("ada@example.org")
    after = {cookie.value for cookie in ada.jar if cookie.key == "alcove"}
    assert before.isdisjoint(after)


async def test_secret_is_not_in_the_database(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    secret = next(cookie.value for cookie in ada.jar if cookie.key == "alcove")
    async with gateway.parts.db.read() as reading:
        rows = [dict(row) for row in await reading.rows(select(session))]
        hashes = [row["password_hash"] for row in await reading.rows(select(account))]
    assert secret not in str(rows)
    assert hashes[0].startswith("$argon2id$")


async def test_sign_in_is_throttled_by_account_whatever_address_it_comes_from(
    serve: Serve,
) -> None:
    gateway = await serve(sign_in_account=Bucket(10, 60))
    await gateway.person("ada@example.org")
    browser = gateway.browser()
    await browser.visit("/sign-in")
    statuses = []
    for n in range(11):
        answer = await browser.send(
            "POST",
            "/sign-in",
            data={"x-csrf-token": browser.csrf, "email": "ada@example.org", "password": f"no {n}"},
            headers={"origin": "http://alcove.test", "x-forwarded-for": f"10.0.0.{n}"},
        )
        statuses.append(answer.status)
    assert statuses == [401] * 10 + [429]
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    right = await gateway.browser().sign_in("ada@example.org")
    assert right.status == 429, "the throttle must not tell when the password is right"


async def test_sign_in_is_throttled_by_address_whatever_account_it_tries(serve: Serve) -> None:
    gateway = await serve(sign_in_ip=Bucket(5, 60))
    browser = gateway.browser()
    statuses = [
        (await browser.sign_in(f"person{n}@example.org", "not it")).status for n in range(6)
    ]
    assert statuses == [401] * 5 + [429]


async def test_attempts_come_back_when_the_clock_was_set_back(serve: Serve) -> None:
    clock = FakeClock()
    gateway = await serve(clock=clock, sign_in_ip=Bucket(2, 60))
    browser = gateway.browser()
    for status in (401, 401, 429):
        assert (await browser.sign_in("ada@example.org", "not it")).status == status
    clock.jump(-3600)
    for status in (401, 401, 429):
        assert (await browser.sign_in("ada@example.org", "not it")).status == status


async def test_success_gives_its_attempt_back(serve: Serve) -> None:
    gateway = await serve(sign_in_account=Bucket(2, 3600), sign_in_ip=Bucket(2, 3600))
    await gateway.person("ada@example.org")
    for _ in range(4):
        assert (await gateway.browser().sign_in("ada@example.org")).status == 303


async def test_sign_up_is_throttled_by_address(serve: Serve) -> None:
    gateway = await serve(sign_up_ip=Bucket(2, 60))
    for n in range(2):
        await gateway.person(f"person{n}@example.org")
    third = gateway.browser()
    await third.visit("/sign-up")
    answer = await third.submit("/sign-up", email="third@example.org", password=PASSWORD)
    assert answer.status == 429


async def test_form_with_what_no_field_can_hold_is_refused(gateway: Gateway) -> None:
    browser = gateway.browser()
    await browser.visit("/sign-in")
    assert (await browser.submit("/sign-in", email="a\0b", password="x")).status == 400


@pytest.mark.parametrize("charset", ["utf-7", "unicode_escape", "punycode", "undefined"])
async def test_form_is_refused_when_it_names_a_charset_of_its_own(
    gateway: Gateway, charset: str
) -> None:
    browser = gateway.browser()
    await browser.visit("/sign-up")
    part = 'Content-Disposition: form-data; name="email"\r\n\r\n+2AA-\\ud800@x.example'
    answer = await browser.send(
        "POST",
        "/sign-up",
        headers={
            "origin": ORIGIN,
            "accept": "text/html",
            "x-csrf-token": browser.csrf,
            "content-type": f"multipart/form-data; boundary=B; charset={charset}",
        },
        data=f"--B\r\n{part}\r\n--B--\r\n".encode(),
    )
    assert answer.status == 400


class Beaten(Passwords):
    """Passwords that take long enough for `meanwhile` to happen first."""

    def __init__(self, meanwhile: Callable[[], Awaitable[object]]) -> None:
        super().__init__(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        self._meanwhile = meanwhile

    async def hash(self, password: str) -> str:
        """As ever, but later."""
        await self._meanwhile()
        return await super().hash(password)


async def test_set_up_is_refused_and_its_link_stays_when_somebody_took_the_address_meanwhile(
    gateway: Gateway,
) -> None:
    here = gateway.parts

    async def sign_up() -> None:
        await here.doors.sign_up("ada@example.org", PASSWORD, VISITOR)

    async with here.db.transaction() as tx:
        link = await admin_links.make(tx, here.limits)
    slow = Doors(here.db, Beaten(sign_up), here.limits, open_=True)
    with pytest.raises(AlcoveError) as caught:
        await slow.set_up(link.token, "ada@example.org", PASSWORD, VISITOR)
    assert (caught.value.code, caught.value.reason) == ("conflict", "address_taken")
    assert (await here.doors.set_up(link.token, "ada@example.org", PASSWORD, VISITOR)).is_admin


async def test_set_up_is_refused_and_its_link_stays_when_the_account_is_suspended(
    gateway: Gateway,
) -> None:
    here = gateway.parts
    await gateway.person("ada@example.org")
    actor = Actor(None, "the house")
    await here.administration.suspend(actor, await gateway.tenant_of("ada@example.org"), "why")
    async with here.db.transaction() as tx:
        link = await admin_links.make(tx, here.limits)
    with pytest.raises(AlcoveError) as caught:
        await here.doors.set_up(link.token, "ada@example.org", PASSWORD, VISITOR)
    assert (caught.value.code, caught.value.reason) == ("forbidden", "suspended")
    assert (await here.doors.set_up(link.token, "bob@example.org", PASSWORD, VISITOR)).is_admin
