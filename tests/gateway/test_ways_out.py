"""What an admin sees of a tenant's ways out: use by day, and what was refused."""

import pytest

from gateway import ways_out
from metering_proxy import wire
from tests.gateway.conftest import Gateway

pytestmark = pytest.mark.thorough

AT = 1_700_000_000_000
HOSTILE = "<script>alert(1)</script>:443"


def _refused(target: str, reason: str, times: int) -> wire.EgressTarget:
    return wire.EgressTarget(target=target, reason=reason, times=times, last_at=AT)


async def test_use_and_refusals_stand_on_the_tenants_page(gateway: Gateway) -> None:
    root = await gateway.admin()
    await gateway.person("ada@example.org")
    hers = await gateway.tenant_of("ada@example.org")
    before = (await root.visit(f"/admin/tenants/{hers}")).text
    assert "ways-record-title" not in before, "nothing was asked for"
    targets = [_refused("mail.example.org:25", "egress_port", 1_300), _refused(HOSTILE, "new", 2)]
    targets += [_refused(f"h{n}.example:1", "egress_port", 1) for n in range(9)]
    gateway.meter.people.egress_records[hers] = wire.EgressRecord(
        days=[wire.EgressUse(start_at=AT, bytes=2_500_000, tunnels=3, calls=1)],
        refusals=wire.EgressRefusals(
            since_at=AT,
            total=1_411,
            reasons=[wire.EgressReason(reason="egress_port", times=1_309, last_at=AT)],
            targets=targets,
            others=100,
            last=[
                wire.EgressRefusal(
                    at=AT, target="inside.example:80", reason="egress_address", kind="link_local"
                )
            ],
        ),
    )
    page = (await root.visit(f"/admin/tenants/{hers}")).text
    for said in (
        "1,411 refused, the first",
        "mail.example.org:25",
        "a port that the plan does not open",
        "1,300",
        "103 more went to targets",
        "inside.example:80",
        "not a public address (link local)",
        "2.5 MB",
        "&lt;script&gt;alert(1)",
    ):
        assert said in page, said
    assert "<script>alert" not in page
    gateway.meter.away = True
    assert (await root.visit(f"/admin/tenants/{hers}")).status == 200


def test_reason_that_is_not_known_is_told_in_its_own_words() -> None:
    assert ways_out.refusal("egress_denied") == "denied by the plan"
    assert ways_out.refusal("first_byte") == "first byte"
