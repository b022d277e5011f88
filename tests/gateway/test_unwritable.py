"""A database that takes nothing (full, read-only, locked): who is in stays in and reads no riddles."""

import pytest
from sqlalchemy import Connection, event

from tests.gateway.browser import PASSWORD, Browser
from tests.gateway.conftest import Gateway, Serve
from tests.waiting import until

pytestmark = pytest.mark.thorough


def _takes_nothing(gateway: Gateway) -> None:
    @event.listens_for(gateway.parts.db.engine.sync_engine, "begin")
    def _began(connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA query_only = 1")


async def until_handed_over(person: Browser) -> None:
    async def nothing_waits() -> bool:
        return not (await person.api("GET", "/api/pending-messages")).json["messages"]

    await until(nothing_waits)


async def test_pages_are_read_when_nothing_can_be_written(serve: Serve) -> None:
    gateway = await serve(session_touch_s=0)
    ada = await gateway.person("ada@example.org")
    await ada.post("hello", "m1")
    await until_handed_over(ada)
    _takes_nothing(gateway)
    for path in ("/chat", "/usage", "/account", "/api/session", "/api/conversations"):
        assert (await ada.visit(path)).status == 200, path
    async with ada.stream() as stream:
        assert not stream.ended
    assert (await ada.post("and again", "m2")).status == 202, "the agent keeps it, not we"


async def test_writes_say_so_plainly_when_nothing_can_be_written(gateway: Gateway) -> None:
    ada = await gateway.person("ada@example.org")
    stranger = gateway.browser()
    _takes_nothing(gateway)
    for browser, path, fields in (
        (stranger, "/sign-up", {"email": "eve@example.org", "password": PASSWORD}),
        (stranger, "/sign-in", {"email": "ada@example.org", "password": PASSWORD}),
        (ada, "/account/sessions/revocations", {}),
    ):
        await browser.visit("/account" if browser is ada else path)
        answer = await browser.submit(path, **fields)
        assert answer.status == 503, path
        assert "does not answer" in answer.text
        assert "Something broke" not in answer.text
    kept = await ada.post("hello", "m1")
    assert (kept.status, kept.reason) == (503, "database"), "asleep: we would have to keep it"
