"""A tenant's own key to a provider: used for its calls alone, never told, paid by the tenant, within its rates."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from infra.kit.db import sql
from infra.kit.errors import AlcoveError
from tests import scripted as s
from tests.metering_proxy.house import SECRET, House, Tenant, a_house
from tests.scripted import ScriptedProvider

_OWN = "sk-the-tenants-own-key-9876"
_SHARED = "sk-provider-key-1234"


def _shown(scripted: ScriptedProvider) -> list[str | None]:
    return [request.headers.get("authorization") for request in scripted.model_requests]


async def test_own_key_is_used_for_its_tenants_calls_and_charges_nothing(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.always(reply=s.text("x").using(100, 50))
    poor = await house.tenant("plus", charge_month_nanos=0)
    assert (await poor.chat()).status == 402
    made = await house.client.put_own_key(poor.id, "scripted", _OWN)
    assert made.hint == "9876"
    assert (await poor.chat(max_tokens=100)).status == 200
    [entry] = await house.entries(poor)
    assert (entry["payer"], entry["cost_nanos"], entry["charge_nanos"]) == ("tenant", 200_000, 0)
    await tenant.chat()
    await house.entries(tenant)
    assert _shown(scripted) == [f"Bearer {_OWN}", f"Bearer {_SHARED}"]
    quota = await house.client.quota(poor.id)
    assert (quota.charge_month.spent_nanos, quota.requests_minute.used) == (0, 1)
    usage = await house.client.usage(from_at=0, to_at=2**50, group=("payer",))
    assert [(row.payer, row.requests) for row in usage.rows] == [("operator", 1), ("tenant", 1)]
    assert (await house.verdict()).whole


async def test_rates_hold_for_calls_with_an_own_key(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.always(reply=s.text("x").using(1, 1))
    await house.client.put_own_key(tenant.id, "scripted", _OWN)
    statuses = [(await tenant.chat()).status for _ in range(21)]
    assert statuses == [200] * 20 + [429]


async def test_removed_own_key_is_used_no_more(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    scripted.always(reply=s.text("x").using(1, 1))
    await house.client.put_own_key(tenant.id, "scripted", _OWN)
    await tenant.chat()
    await house.client.delete_own_key(tenant.id, "scripted")
    await house.client.delete_own_key(tenant.id, "scripted")
    await tenant.chat()
    await house.entries(tenant, 2)
    assert _shown(scripted) == [f"Bearer {_OWN}", f"Bearer {_SHARED}"]
    assert await house.client.own_keys(tenant.id) == []


async def test_own_key_is_never_readable_back(house: House, tenant: Tenant) -> None:
    await house.client.put_own_key(tenant.id, "scripted", _OWN)
    answers = [
        await house.client.service.call("GET", path)
        for path in (f"/tenants/{tenant.id}/provider-keys", "/providers", "/models")
    ]
    rows = await house.rows("SELECT * FROM own_key")
    assert _OWN not in f"{answers} {rows}"
    assert all(_OWN.encode() not in path.read_bytes() for path in house.root.glob("meter.db*"))


@pytest.mark.parametrize(
    ("provider", "key", "code"),
    [
        ("nowhere", _OWN, "not_found"),
        ("scripted", "a key with spaces", "invalid"),
        ("scripted", "schlüssel-mit-ü", "invalid"),
        ("scripted", "short", "invalid"),
    ],
)
async def test_own_key_that_cannot_be_one_is_refused(
    house: House, tenant: Tenant, provider: str, key: str, code: str
) -> None:
    with pytest.raises(AlcoveError) as caught:
        await house.client.put_own_key(tenant.id, provider, key)
    assert caught.value.code == code
    assert key not in str(caught.value.details)


async def test_own_key_that_cannot_be_opened_stops_its_tenants_calls_alone(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    scripted.always(reply=s.text("x").using(1, 1))
    url = f"sqlite:///{tmp_path}/m.db"
    async with a_house(tmp_path, url) as house:
        await house.connect(scripted)
        unlucky = await house.tenant()
        await house.client.put_own_key(unlucky.id, "scripted", _OWN)
        async with house.db.transaction() as tx:
            await tx.execute(sql("UPDATE own_key SET sealed_key = 'v1.0badc0de.AAAA'"), {})
    async with a_house(tmp_path, url) as house:
        other = await house.tenant()
        assert (await other.chat()).status == 200
        again = await house.generation(unlucky.id, 2)
        answer = await again.chat()
        assert (answer.status, answer.headers["x-alcove-reason"]) == (403, "own_key_unreadable")
        assert [key.hint for key in await house.client.own_keys(unlucky.id)] == ["9876"]
        assert _shown(scripted) == [f"Bearer {_SHARED}"]
        await house.client.put_own_key(unlucky.id, "scripted", _OWN)
        assert (await again.chat()).status == 200
        assert _shown(scripted)[1:] == [f"Bearer {_OWN}"]


def _meter(root: Path, *verb: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "ALCOVE_DEPLOYMENT": "test",
        "ALCOVE_SERVICE_SECRET": SECRET,
        "ALCOVE_METER_DATABASE_URL": f"sqlite:///{root}/m.db",
        "ALCOVE_METER_LISTEN": f"unix://{root}/control.sock",
        "ALCOVE_SOCKETS_DIR": str(root / "s"),
        **settings,
    }
    command = [sys.executable, "-m", "metering_proxy", *verb]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.thorough
async def test_sealing_key_is_rotated_by_command_and_the_old_one_is_needed_no_more(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    scripted.always(reply=s.text("x").using(1, 1))
    url, old, new = f"sqlite:///{tmp_path}/m.db", "5a" * 32, "6b" * 32
    async with a_house(tmp_path, url, sealing_key=old) as house:
        await house.connect(scripted)
        tenant = await house.tenant()
        await house.client.put_own_key(tenant.id, "scripted", _OWN)
    lost = _meter(tmp_path, "reseal", ALCOVE_SEALING_KEY=new)
    assert lost.returncode != 0
    done = _meter(tmp_path, "reseal", ALCOVE_SEALING_KEY=new, ALCOVE_SEALING_KEYS_OLD=old)
    assert done.stdout.strip() == '{"resealed": 2}', done.stderr
    again = _meter(tmp_path, "reseal", ALCOVE_SEALING_KEY=new)
    assert again.stdout.strip() == '{"resealed": 0}', again.stderr
    assert _OWN not in done.stdout + done.stderr + lost.stdout + lost.stderr
    async with a_house(tmp_path, url, sealing_key=new) as house:
        tenant = await house.generation(tenant.id, 2)
        assert (await tenant.chat()).status == 200
        await house.entries(tenant)
    assert _shown(scripted) == [f"Bearer {_OWN}"]
    assert _meter(tmp_path, "verify", ALCOVE_SEALING_KEY=new).returncode == 0


async def test_own_key_is_tried_by_one_real_call_and_not_kept(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    found = await house.client.probe_own_key(tenant.id, "scripted", f" {_OWN}\n")
    assert (found.ok, found.models) == (True, 1)
    assert scripted.requests[-1].headers["authorization"] == f"Bearer {_OWN}"
    assert await house.client.own_keys(tenant.id) == []
    [shared] = await house.client.providers()
    assert shared.probe is None, "what a tenant tries says nothing of the operator's key"
    for provider, key, code in (
        ("nobody", _OWN, "not_found"),
        ("scripted", "a b c d e", "invalid"),
    ):
        with pytest.raises(AlcoveError) as caught:
            await house.client.probe_own_key(tenant.id, provider, key)
        assert caught.value.code == code
