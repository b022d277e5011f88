"""What an admin is told of a tenant's ways out: use by day, and what was refused, within a fixed size."""

from pathlib import Path

import pytest

from infra.kit.clock import FakeClock
from infra.kit.errors import AlcoveError
from metering_proxy.egress.record import LAST, MOST_TARGETS, MOST_TENANTS, Refusals
from tests.metering_proxy.egress.outdoors import (
    STAND_IN,
    Names,
    Server,
    allowed,
    connecting,
    opened,
    plans_file,
    refused,
    world,
)
from tests.metering_proxy.house import a_house
from tests.waiting import until


def _error(reason: str, **details: str) -> AlcoveError:
    return AlcoveError("forbidden", "no", reason=reason, **details)


@pytest.fixture
def refusals(clock: FakeClock) -> Refusals:
    return Refusals(clock)


def test_refusals_are_counted_by_reason_and_target_and_the_last_are_kept(
    refusals: Refusals, clock: FakeClock
) -> None:
    began_at = clock.now_at()
    for n in range(30):
        refusals.note("ada", f"h{n % 3}.example:25", _error("egress_port"))
        clock.advance(1)
    refusals.note("ada", "inside.example:443", _error("egress_address", kind="private"))
    refusals.note("bob", "x.example:443", _error("egress_off"))
    told = refusals.of("ada")
    assert (told.since_at, told.total, told.others) == (began_at, 31, 0)
    assert [(r.reason, r.times) for r in told.reasons] == [
        ("egress_port", 30),
        ("egress_address", 1),
    ]
    assert [(t.target, t.reason, t.times) for t in told.targets] == [
        ("h2.example:25", "egress_port", 10),
        ("h1.example:25", "egress_port", 10),
        ("h0.example:25", "egress_port", 10),
        ("inside.example:443", "egress_address", 1),
    ]
    assert told.targets[0].last_at == began_at + 29_000
    assert len(told.last) == LAST
    assert (told.last[0].target, told.last[0].kind) == ("inside.example:443", "private")
    assert told.last[1].at == began_at + 29_000
    assert refusals.of("bob").total == 1
    assert refusals.of("carol").total == 0


def test_a_hundred_thousand_targets_take_no_more_room_than_a_few(refusals: Refusals) -> None:
    for _ in range(50):
        refusals.note("ada", "wanted.example:443", _error("egress_denied"))
    for n in range(100_000):
        refusals.note("ada", f"{n}-{'x' * 5_000}:443", _error(f"egress_odd_host_{n % 1_000}"))
    told = refusals.of("ada")
    assert told.total == 100_050
    assert (len(told.targets), len(told.last), len(told.reasons)) == (MOST_TARGETS, LAST, 40)
    assert (told.targets[0].target, told.targets[0].times) == ("wanted.example:443", 50)
    assert told.others + sum(target.times for target in told.targets) == told.total
    assert all(len(target.target) <= 120 for target in told.targets)


def test_tenants_refused_longest_ago_make_room(refusals: Refusals) -> None:
    for n in range(MOST_TENANTS + 5):
        refusals.note(f"t{n}", "x.example:1", _error("egress_port"))
        refusals.note("t0", "x.example:1", _error("egress_port"))
    assert refusals.of("t0").total == MOST_TENANTS + 6
    assert refusals.of("t1").total == 0
    assert refusals.of(f"t{MOST_TENANTS + 4}").total == 1


def test_what_a_terminal_would_obey_is_told_as_a_question_mark(refusals: Refusals) -> None:
    refusals.note("ada", "a\x1b[31m\0é\udcff:1", _error("egress_odd_host"))
    assert refusals.of("ada").last[0].target == "a?[31m???:1"


async def test_use_and_refusals_of_a_tenant_are_told_over_the_control_listener(
    tmp_path: Path, database_url: str, names: Names, server: Server, clock: FakeClock
) -> None:
    plans = plans_file(tmp_path, server.port, deny='["denied.example"]')
    outside = world(names)
    async with a_house(
        tmp_path, database_url, outside=outside, plans_file=plans, clock=clock
    ) as house:
        names.say("a.example", [STAND_IN])
        names.say("inside.example", ["10.0.0.8"])
        tenant, other = await allowed(house), await allowed(house)
        for target, status, reason in (
            ("denied.example", 403, "egress_denied"),
            ("denied.example", 403, "egress_denied"),
            ("inside.example", 403, "egress_address"),
            ("nobody.example", 502, "egress_unknown_name"),
        ):
            async with connecting(tenant, f"{target}:{server.port}") as client:
                await refused(client, status, reason)
        for _ in range(2):
            async with connecting(tenant, f"a.example:{server.port}") as client:
                await opened(client)
                client.send(b"hello")
                await client.reader.readexactly(5)
            await until(lambda: not house.meter.egress.open)
            clock.advance(86_400)
        missing = await tenant.session.get(
            "http://localhost/connections/none/path?secret=1",
            headers={"authorization": f"Bearer {tenant.key}"},
        )
        assert missing.status == 404
        told = await house.client.egress_record(tenant.id)
        assert [day.tunnels for day in told.days] == [1, 3], (
            "one begun is counted, though it found nobody"
        )
        assert told.days[0].start_at - told.days[1].start_at == 86_400_000
        assert [day.bytes for day in told.days] == [10, 10]
        assert told.refusals.total == 5
        assert (told.refusals.targets[0].target, told.refusals.targets[0].times) == (
            f"denied.example:{server.port}",
            2,
        )
        found = {(r.target, r.reason, r.kind) for r in told.refusals.last}
        assert (f"inside.example:{server.port}", "egress_address", "private") in found
        assert ("/connections/none", "no_such_connection", None) in found
        assert "secret" not in str(told)
        nothing = await house.client.egress_record(other.id)
        assert (nothing.days, nothing.refusals.total, nothing.refusals.since_at) == ([], 0, None)
