"""A person's keys: their own to providers, and those of their programs."""

import logging
import re

import pytest
from sqlalchemy import select

from gateway.models import audit
from tests.gateway.browser import Browser
from tests.gateway.conftest import Gateway

pytestmark = pytest.mark.thorough

ADA, OWN = "ada@example.org", "sk-ada-pays-herself-x7Qd"
SECRET = re.compile(r'value="(alcove-key-[A-Za-z0-9_-]+)"')


async def _connected(gateway: Gateway, name: str = "OpenAI") -> None:
    root = await gateway.admin()
    await root.submit("/admin/providers", kind="openai", name=name, key="sk-the-house-pays-a1B2")


async def _audited(gateway: Gateway) -> list[tuple[str, str]]:
    async with gateway.parts.db.read() as reading:
        rows = await reading.rows(select(audit).order_by(audit.c.id))
    return [(row["actor"], row["action"]) for row in rows]


async def test_own_key_is_tested_sealed_and_shown_by_its_end_alone(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await _connected(gateway)
    ada = await gateway.person(ADA)
    theirs = await gateway.tenant_of(ADA)
    before = await ada.visit("/account/keys")
    assert "Paid from your plan" in before.text
    assert "a1B2" not in before.text, "the house's key is no business of Ada's"
    saved = await ada.submit("/account/keys/providers/p1", key=OWN)
    assert (saved.status, saved.location) == (303, "/account/keys")
    assert gateway.meter.people.own_keys == {(theirs, "p1"): OWN}
    assert gateway.meter.people.tried == [OWN]
    shown = await ada.visit("/account/keys")
    assert "…x7Qd" in shown.text
    assert "You pay here" in shown.text
    for text in (saved.text, shown.text, caplog.text, str(saved.headers)):
        assert OWN not in text
    assert (ADA, "own_key.set") in await _audited(gateway)


async def test_own_key_that_fails_its_test_is_not_kept_and_the_old_one_stays(
    gateway: Gateway,
) -> None:
    await _connected(gateway)
    ada = await gateway.person(ADA)
    await ada.submit("/account/keys/providers/p1", key=OWN)
    wrong = "sk-mistyped-0000000"
    gateway.meter.people.refused_keys.add(wrong)
    refused = await ada.submit("/account/keys/providers/p1", key=wrong)
    assert refused.status == 400
    assert "The test failed" in refused.text
    assert "data-open-now" in refused.text
    assert wrong not in refused.text
    assert list(gateway.meter.people.own_keys.values()) == [OWN]


async def test_own_key_is_removed(gateway: Gateway) -> None:
    await _connected(gateway)
    ada = await gateway.person(ADA)
    await ada.submit("/account/keys/providers/p1", key=OWN)
    gone = await ada.submit("/account/keys/providers/p1/deletion")
    assert gone.status == 303
    assert gateway.meter.people.own_keys == {}
    assert "Paid from your plan" in (await ada.visit("/account/keys")).text
    assert (ADA, "own_key.removed") in await _audited(gateway)


@pytest.mark.parametrize("act", ["", "/deletion"])
async def test_own_key_goes_to_no_provider_that_is_off_or_not_there(
    gateway: Gateway, act: str
) -> None:
    gateway.meter.probe_fails = True
    await _connected(gateway)  # off, since its test failed
    ada = await gateway.person(ADA)
    for provider in ("p1", "p9"):
        answer = await ada.submit(f"/account/keys/providers/{provider}{act}", key=OWN)
        assert answer.status == 404
    assert gateway.meter.people.tried == []


async def _made(ada: Browser, **fields: str) -> tuple[str, str]:
    """A key, and the page that showed it."""
    page = await ada.submit("/account/keys/programs", **{"name": "Laptop", "lasts": "90", **fields})
    assert page.status == 200, page.text
    [secret] = SECRET.findall(page.text)
    return secret, page.text


async def test_key_for_a_program_is_shown_once_and_then_by_its_end(gateway: Gateway) -> None:
    ada = await gateway.person(ADA)
    theirs = await gateway.tenant_of(ADA)
    secret, _ = await _made(ada, models="anthropic/*, openai/gpt-5")
    [kept] = gateway.meter.people.api_keys[theirs]
    assert (kept.name, kept.models) == ("Laptop", ["anthropic/*", "openai/gpt-5"])
    assert kept.expires_at is not None
    assert kept.expires_at - kept.created_at == pytest.approx(90 * 86_400_000, abs=60_000)
    later = await ada.visit("/account/keys")
    assert secret not in later.text
    assert f"…{secret[-4:]}" in later.text
    assert "anthropic/*, openai/gpt-5" in later.text
    assert (ADA, "api_key.made") in await _audited(gateway)


async def test_rotated_key_works_on_beside_the_new_one_until_it_is_over(gateway: Gateway) -> None:
    ada = await gateway.person(ADA)
    theirs = await gateway.tenant_of(ADA)
    first, _ = await _made(ada)
    [old] = gateway.meter.people.api_keys[theirs]
    page = await ada.submit(f"/account/keys/programs/{old.id}/rotations")
    [second] = SECRET.findall(page.text)
    assert second != first
    assert "works for 24 hours more" in page.text
    assert "Replaced" in page.text
    assert page.text.count("/rotations") == 1, "what was replaced is not rotated again"
    assert (ADA, "api_key.rotated") in await _audited(gateway)
    again = await ada.submit(
        f"/account/keys/programs/{old.id}/rotations"
    )  # of a page that stood open
    assert (again.status, again.location) == (303, "/account/keys")
    assert "rotated already" in (await ada.visit("/account/keys")).text
    assert len(gateway.meter.people.api_keys[theirs]) == 2


async def test_own_key_can_be_taken_back_when_its_provider_is_off(gateway: Gateway) -> None:
    await _connected(gateway)
    ada = await gateway.person(ADA)
    await ada.submit("/account/keys/providers/p1", key=OWN)
    gateway.meter.providers.clear()
    page = await ada.visit("/account/keys")
    assert "Not connected just now" in page.text
    assert (await ada.submit("/account/keys/providers/p1/deletion")).status == 303
    assert gateway.meter.people.own_keys == {}


async def test_key_for_a_program_is_ended_by_its_owner_alone(gateway: Gateway) -> None:
    ada, eve = await gateway.person(ADA), await gateway.person("eve@example.org")
    theirs = await gateway.tenant_of(ADA)
    await _made(ada)
    [key] = gateway.meter.people.api_keys[theirs]
    path = f"/account/keys/programs/{key.id}"
    assert (await eve.submit(f"{path}/revocation")).status == 404
    assert (await eve.submit(f"{path}/rotations")).status == 404
    assert (await ada.submit(f"{path}/revocation")).status == 303
    [ended] = gateway.meter.people.api_keys[theirs]
    assert ended.revoked_at is not None
    assert "Ended" in (await ada.visit("/account/keys")).text
    again = await ada.submit(f"{path}/rotations")
    assert (again.status, again.location) == (303, "/account/keys")


@pytest.mark.parametrize("fields", [{"name": "  "}, {"name": "n" * 81}, {"models": "not a model"}])
async def test_form_says_what_is_wrong_when_a_key_cannot_be_made(
    gateway: Gateway, fields: dict[str, str]
) -> None:
    ada = await gateway.person(ADA)
    if "models" in fields:
        fields = {"models": ",".join("m" * 300 for _ in range(2))}
    answer = await ada.submit(
        "/account/keys/programs", **{"name": "Laptop", "lasts": "30", **fields}
    )
    assert answer.status == 400
    assert 'aria-invalid="true"' in answer.text
    assert gateway.meter.people.api_keys == {}


async def test_page_says_so_when_the_meter_is_away(gateway: Gateway) -> None:
    ada = await gateway.person(ADA)
    gateway.meter.away = True
    page = await ada.visit("/account/keys")
    assert page.status == 200
    assert "does not answer" in page.text
    assert (await ada.submit("/account/keys/programs", name="Laptop", lasts="")).status == 503
