"""Connecting a provider: the key goes to the meter and nowhere else."""

import logging

import pytest
from sqlalchemy import select

from gateway.models import audit
from tests.gateway.conftest import Gateway

pytestmark = pytest.mark.thorough

KEY = "sk-live-0123456789-secret-a1B2"


async def test_provider_is_connected_tested_and_its_key_is_nowhere(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    root = await gateway.admin()
    await root.visit("/admin/providers/new")
    answer = await root.submit(
        "/admin/providers", kind="openai", name="OpenAI", key=KEY, make_default="on"
    )
    assert (answer.status, answer.location) == (303, "/admin/providers")
    assert gateway.meter.keys == [KEY]
    assert "probe p1" in gateway.meter.calls
    listed = await root.visit("/admin/providers")
    assert "It answered." in listed.text
    edited = await root.visit("/admin/providers/p1")
    async with gateway.parts.db.read() as reading:
        rows = str([dict(row) for row in await reading.rows(select(audit))])
    assert "provider.connected" in rows
    for text in (answer.text, listed.text, edited.text, rows, caplog.text):
        assert KEY not in text
        assert KEY[3:-4] not in text


async def test_compatible_provider_needs_its_address_and_prices(gateway: Gateway) -> None:
    root = await gateway.admin()
    common = {"kind": "compatible", "name": "Ours", "key": KEY}
    no_address = await root.submit("/admin/providers", **common)
    assert no_address.status == 400
    assert KEY not in no_address.text
    for price in ("cheap", "-3.00", "1e9", "NaN", ""):
        bad_price = await root.submit(
            "/admin/providers",
            **common,
            base_url="https://models.example/v1",
            model_id="a/b",
            model_input_usd=price,
            model_output_usd="1",
        )
        assert bad_price.status == 400, price
        assert "a/b" in bad_price.text
    assert gateway.meter.providers == []
    good = await root.submit(
        "/admin/providers",
        **common,
        base_url="https://models.example/v1",
        model_id="a/b",
        model_input_usd="3.00",
        model_output_usd="15",
    )
    assert good.status == 303
    row = gateway.meter.providers[0].rows[0]
    assert (row.input_nanos, row.output_nanos) == (3_000_000_000, 15_000_000_000)
    shown = await root.visit("/admin/providers/p1")
    assert 'value="3.00"' in shown.text
    assert 'value="15.00"' in shown.text


async def test_empty_key_keeps_the_one_that_is_there(gateway: Gateway) -> None:
    root = await gateway.admin()
    await root.submit("/admin/providers", kind="openai", name="OpenAI", key=KEY)
    await root.submit("/admin/providers/p1", kind="openai", name="Renamed", key="")
    assert gateway.meter.keys == [KEY]
    assert gateway.meter.providers[0].name == "Renamed"
    await root.submit("/admin/providers/p1", kind="openai", name="Renamed", key="sk-new-key")
    assert gateway.meter.keys == [KEY, "sk-new-key"]


async def test_meters_refusal_is_shown_at_its_field(gateway: Gateway) -> None:
    root = await gateway.admin()
    refused = await root.submit("/admin/providers", kind="openai", name="OpenAI", key="")
    assert refused.status == 400
    assert "The provider&#39;s key is needed." in refused.text
    assert 'value="OpenAI"' in refused.text
    assert gateway.meter.providers == []


async def test_provider_is_made_default_tested_and_removed(gateway: Gateway) -> None:
    root = await gateway.admin()
    await root.submit("/admin/providers", kind="openai", name="OpenAI", key=KEY)
    assert (await root.submit("/admin/providers/p1/default")).status == 303
    assert gateway.meter.providers[0].is_default
    partial = await root.send(
        "POST",
        "/admin/providers/p1/probes",
        headers={
            "hx-request": "true",
            "origin": "http://alcove.test",
            "x-csrf-token": root.csrf,
        },
    )
    assert "It answered." in partial.text
    assert "<html" not in partial.text
    assert (await root.submit("/admin/providers/p1/deletion")).status == 303
    assert gateway.meter.providers == []
    assert (await root.submit("/admin/providers/p1/deletion")).status == 404
    assert (await root.visit("/admin/providers/p9")).status == 404


async def test_new_provider_answers_nobody_until_a_test_passes(gateway: Gateway) -> None:
    root = await gateway.admin()
    gateway.meter.probe_fails = True
    await root.submit("/admin/providers", kind="openai", name="OpenAI", key=KEY, make_default="on")
    assert (gateway.meter.providers[0].enabled, gateway.meter.providers[0].is_default) == (
        False,
        False,
    )
    listed = await root.visit("/admin/providers")
    assert "OpenAI is saved, but it is off until a test passes." in listed.text
    assert "is connected" not in listed.text
    assert "Answered in" not in listed.text, "what refused did not answer"
    assert "Off until a test passes" in listed.text
    gateway.meter.probe_fails = False
    await root.submit("/admin/providers/p1/probes")
    assert gateway.meter.providers[0].enabled


async def test_providers_of_one_name_are_told_apart_by_their_id(gateway: Gateway) -> None:
    root = await gateway.admin()
    shown = '<span class="mono quiet">{}</span>'
    await root.submit("/admin/providers", kind="openai", name="Fake", key=KEY)
    assert shown.format("p1") not in (await root.visit("/admin/providers")).text
    await root.submit("/admin/providers", kind="openai", name="Fake", key=KEY)
    listed = (await root.visit("/admin/providers")).text
    assert shown.format("p1") in listed
    assert shown.format("p2") in listed


async def test_new_provider_takes_over_when_its_test_passes_and_it_was_asked_to(
    gateway: Gateway,
) -> None:
    root = await gateway.admin()
    await root.submit("/admin/providers", kind="openai", name="Quiet", key=KEY)
    assert (gateway.meter.providers[0].enabled, gateway.meter.providers[0].is_default) == (
        True,
        False,
    )
    await root.submit("/admin/providers", kind="openai", name="Loud", key=KEY, make_default="on")
    assert gateway.meter.providers[1].is_default
    before = gateway.meter.calls.index("create provider")
    order = gateway.meter.calls[before:]
    assert order.index("probe p1") < order.index("change p1"), "tested before it is switched on"


async def test_provider_is_switched_off_when_its_new_key_fails_the_test(gateway: Gateway) -> None:
    root = await gateway.admin()
    await root.submit("/admin/providers", kind="openai", name="OpenAI", key=KEY)
    gateway.meter.probe_fails = True
    await root.submit("/admin/providers/p1", kind="openai", name="Only renamed", key="")
    assert gateway.meter.providers[0].enabled, "what calls as before goes on calling"
    await root.submit("/admin/providers/p1", kind="openai", name="OpenAI", key="sk-mistyped")
    assert not gateway.meter.providers[0].enabled
    assert (await root.submit("/admin/providers/p1/default")).status == 303
    assert gateway.meter.providers[0].enabled, "an admin may know better than the test"
