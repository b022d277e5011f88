"""Several limits that are used up at once: the refusal is of the one that ends last, since a try before that is
refused again."""

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from infra.kit import unix
from infra.kit.clock import FakeClock
from metering_proxy import wire
from tests import scripted as s
from tests.metering_proxy.house import MODEL, House, Tenant, a_house
from tests.scripted import ScriptedProvider

_NOW = datetime(2026, 11, 28, 23, 59, 30, tzinfo=UTC)
_MINUTE, _DAY, _MONTH = 30, 30, 2 * 86_400 + 30
"""Seconds until the minute, the day and the month end."""

# Limits that have room for one call as below, and for no second one; and one that has room for many.
_COST, _TOKENS, _ONE, _MANY = 1_300_000, 700, 1, 10**9
# What is used up, and what its caller is told: status, reason, seconds until it begins anew.
TOGETHER = [
    ({"requests_minute": _ONE}, 429, "requests_minute", _MINUTE),
    ({"charge_minute_nanos": _COST, "charge_month_nanos": _COST}, 402, "quota_charge_month", _MONTH),
    ({"charge_month_nanos": _COST, "requests_minute": _ONE}, 402, "quota_charge_month", _MONTH),
    ({"tokens_minute": _TOKENS, "tokens_month": _TOKENS}, 402, "quota_tokens_month", _MONTH),
    ({"requests_minute": _ONE, "requests_month": _ONE}, 402, "quota_requests_month", _MONTH),
    ({"requests_minute": _ONE, "tokens_month": _TOKENS}, 402, "quota_tokens_month", _MONTH),
    ({"tokens_day": _TOKENS, "charge_month_nanos": _COST}, 402, "quota_charge_month", _MONTH),
    ({"charge_day_nanos": _COST, "requests_month": _ONE}, 402, "quota_requests_month", _MONTH),
    ({"charge_day_nanos": _COST, "tokens_day": _TOKENS}, 402, "quota_charge_day", _DAY),
    ({"charge_month_nanos": _COST, "tokens_month": _TOKENS}, 402, "quota_charge_month", _MONTH),
    ({"charge_minute_nanos": _COST, "requests_minute": _ONE}, 429, "requests_minute", _MINUTE),
    ({"charge_minute_nanos": _COST, "tokens_minute": _TOKENS}, 429, "charge_minute", _MINUTE),
    ({"charge_minute_nanos": _COST, "tokens_day": _TOKENS, "requests_month": _ONE}, 402, "quota_requests_month",
        _MONTH),
    ({"charge_minute_nanos": _COST, "charge_month_nanos": _MANY}, 429, "charge_minute", _MINUTE),
    ({"charge_minute_nanos": _MANY, "charge_month_nanos": _COST}, 402, "quota_charge_month", _MONTH),
    ({"charge_minute_nanos": None, "charge_month_nanos": None, "tokens_day": _TOKENS}, 402, "quota_tokens_day",
        _DAY),
    ({"requests_minute": _ONE, "concurrent": _ONE}, 429, "requests_minute", _MINUTE),
]  # fmt: skip


@pytest.mark.parametrize(("quota", "status", "reason", "seconds"), TOGETHER)
async def test_refusal_is_of_the_limit_that_ends_last(
    tmp_path: Path,
    scripted: ScriptedProvider,
    quota: dict[str, int | None],
    status: int,
    reason: str,
    seconds: int,
) -> None:
    clock = FakeClock(round(_NOW.timestamp() * 1000))
    async with a_house(tmp_path, f"sqlite:///{tmp_path}/m.db", clock=clock) as house:
        await house.connect(scripted)
        tenant = await house.tenant("free", **quota)
        scripted.then(reply=s.text("x").using(100, 500))
        assert (await tenant.chat()).status == 200
        await house.entries(tenant)
        answer = await tenant.chat()
        assert (answer.status, answer.headers["x-alcove-reason"]) == (status, reason)
        assert int(answer.headers["x-alcove-resets-at"]) == clock.now_at() + seconds * 1000
        assert answer.headers.get("retry-after") == (str(seconds) if status == 429 else None)
        assert answer.headers["x-should-retry"] == "false"
        assert len(await house.rows("SELECT * FROM reservation")) == 1
        assert await house.held(tenant) == 0
    assert len(scripted.model_requests) == 1


async def test_own_key_is_refused_by_rates_and_not_by_money_that_is_used_up(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    await house.client.put_own_key(tenant.id, "scripted", "sk-the-tenants-own-key")
    nothing = wire.QuotaOverride(charge_month_nanos=0, charge_day_nanos=0, requests_day=1)
    state = wire.TenantState(plan="free", status="active", version=1, quota=nothing)
    await house.client.put_tenant(tenant.id, state)
    scripted.then(reply=s.text("x").using(1, 1))
    assert (await tenant.chat()).status == 200
    answer = await tenant.chat()
    assert (answer.status, answer.headers["x-alcove-reason"]) == (402, "quota_requests_day")


async def _slowly(tenant: Tenant, meanwhile: Callable[[], Awaitable[object]]) -> bytes:
    """The head of the answer to a chat between the halves of whose body something happens."""
    reader, writer = await unix.open_stream(tenant.socket)
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}).encode()
    writer.write(
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: m\r\nauthorization: Bearer {tenant.key}\r\n"
        f"content-length: {len(body)}\r\nexpect: 100-continue\r\n\r\n".encode()
    )
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
    writer.write(body[:20])
    await meanwhile()
    writer.write(body[20:])
    answer = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("now", "status", "reason"),
    [
        ({"status": "suspended"}, 403, "suspended"),
        ({"status": "deleted"}, 403, "deleted"),
        ({"status": "active", "quota": {"charge_month_nanos": 0}}, 402, "quota_charge_month"),
        ({"status": "active", "quota": {"requests_minute": 0}}, 429, "requests_minute"),
    ],
)
async def test_decision_made_while_a_body_comes_counts_for_its_call(
    house: House,
    tenant: Tenant,
    scripted: ScriptedProvider,
    now: dict[str, Any],
    status: int,
    reason: str,
) -> None:
    """A body may take two minutes: who was suspended meanwhile, or has no money by now, calls nobody."""
    fine = wire.TenantState(plan="free", status="active", version=1)
    await house.client.put_tenant(tenant.id, fine)

    async def decide() -> None:
        state = wire.TenantState.model_validate({"plan": "free", "version": 2, **now})
        await house.client.put_tenant(tenant.id, state)

    answer = await _slowly(tenant, decide)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert f"x-alcove-reason: {reason}\r\n".encode() in answer
    assert scripted.requests == []
