"""The meter's audit for operators: of one tenant or of all, newest first, in pages."""

import pytest

from infra.kit.errors import AlcoveError
from metering_proxy import wire
from tests.metering_proxy.house import House


async def test_audit_comes_newest_first_and_page_by_page(both: House) -> None:
    ada, bob = await both.tenant(), await both.tenant()
    for n in range(4):
        quota = wire.QuotaOverride(charge_month_nanos=n + 1, note=f"reason {n}")
        state = wire.TenantState(plan="free", status="active", version=n + 2, quota=quota)
        await both.client.put_tenant(ada.id, state)
    stranger = await bob.post("/v1/chat/completions", {}, key=ada.key)
    assert stranger.status == 401
    everything = await both.client.audit()
    assert [row.what for row in everything.rows] == ["stranger_key", *["quota_override"] * 4]
    assert everything.rows[0].tenant == bob.id
    assert "reason 3" in everything.rows[1].detail
    seen: list[str] = []
    before = None
    while True:
        page = await both.client.audit(tenant=ada.id, before=before, limit=3)
        seen += [row.id for row in page.rows]
        before = page.next
        if before is None:
            break
    assert seen == [row.id for row in everything.rows[1:]]
    assert (await both.client.audit(tenant="a" * 16)).rows == []
    with pytest.raises(AlcoveError) as caught:
        await both.client.audit(before="no id; at all")
    assert caught.value.code == "invalid"
