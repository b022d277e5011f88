"""One-time links that lost their end, are used or too old: a page that says what to do, and its status."""

from collections.abc import Awaitable, Callable

import pytest

from gateway.accounts import admin_links, recovery
from gateway.tenants.audit import Actor
from infra.kit.clock import FakeClock
from tests.gateway.browser import PASSWORD
from tests.gateway.conftest import Gateway, Serve

ADA = "ada@example.org"
NEW = "a quite new password"
Make = Callable[[Gateway], Awaitable[str]]


async def _setup(gateway: Gateway) -> str:
    async with gateway.parts.db.transaction() as tx:
        return f"/setup/{(await admin_links.make(tx, gateway.parts.limits)).token}"


async def _password(gateway: Gateway) -> str:
    async with gateway.parts.db.transaction() as tx:
        made = await recovery.make(tx, Actor(None, "test"), ADA, "asked", gateway.parts.limits)
    return f"/password/{made.token}"


DOORS = pytest.mark.parametrize(
    ("make", "sent", "way_out"),
    [
        (_setup, {"email": "eve@example.org", "password": NEW}, "python -m gateway admin-link"),
        (_password, {"password": NEW}, "ask whoever runs this Alcove for a new one"),
    ],
    ids=["setup", "password"],
)


@DOORS
async def test_link_without_its_end_says_how_to_get_a_whole_one(
    gateway: Gateway, make: Make, sent: dict[str, str], way_out: str
) -> None:
    await gateway.person(ADA)
    whole = await make(gateway)
    door = "/" + whole.split("/")[1]
    browser = gateway.browser()
    for part in (whole[:-1], whole[:-20], whole[: len(door) + 2], f"{door}/", door):
        shown = await browser.visit(part)
        assert (shown.status, "This link is not whole" in shown.text) == (404, True), part
        assert way_out in shown.text
        assert 'name="password"' not in shown.text
    posted = await browser.submit(whole[:-1], **sent)
    assert (posted.status, way_out in posted.text) == (404, True)
    assert (await browser.visit(whole)).status == 200, "the whole link is as good as before"
    assert (await gateway.browser().sign_in(ADA, PASSWORD)).status == 303


@DOORS
async def test_link_that_is_used_or_old_is_gone(
    serve: Serve, make: Make, sent: dict[str, str], way_out: str
) -> None:
    clock = FakeClock()
    gateway = await serve(clock=clock)
    await gateway.person(ADA)
    used = await make(gateway)
    browser = gateway.browser()
    await browser.visit(used)
    assert (await browser.submit(used, **sent)).status == 303
    again = await gateway.browser().visit(used)
    assert (again.status, "has done its work" in again.text) == (410, True)
    old = await make(gateway)
    clock.advance(3600)
    late = await gateway.browser().visit(old)
    assert (late.status, "too old" in late.text) == (410, True)
