"""CONNECT at a tenant's socket: what is let out, what is not and why, and what is counted."""

import asyncio
import logging
from collections.abc import Iterator

import pytest

from infra.kit.errors import AlcoveError
from metering_proxy.egress.addresses import IPAddress
from metering_proxy.egress.outside import Outside
from tests.metering_proxy.egress.outdoors import (
    NOBODY,
    STAND_IN,
    Names,
    Server,
    allowed,
    connecting,
    counted,
    opened,
    refused,
)
from tests.metering_proxy.house import House, Tenant

# What a name is found to be, what is asked for, and the answer. {port} is the server's, which the plan lets out.
A, B = STAND_IN, "127.0.0.1"
TABLE = [
    ("a.example:{port}", [A], 200, ""),
    ("A.Example.:{port}", [A], 200, ""),
    ("{stand_in}:{port}", None, 200, ""),
    ("a.example:22", [A], 403, "egress_port"),
    ("a.example:25", [A], 403, "egress_port"),
    ("a.example:6379", [A], 403, "egress_port"),
    ("unknown.example:443", None, 502, "egress_unknown_name"),
    ("nothing.example:443", [], 502, "egress_unknown_name"),
    ("closed.example:80", [A], 502, "egress_unreachable"),
    ("denied.example:443", [A], 403, "egress_denied"),
    ("sub.denied.example:443", [A], 403, "egress_denied"),
    ("api.openai.com:443", [A], 403, "egress_provider"),
    ("API.Anthropic.com.:443", [A], 403, "egress_provider"),
    ("eu.api.openai.com:443", [A], 403, "egress_provider"),
    ("localhost:{port}", [B], 403, "egress_private_name"),
    ("gateway:{port}", [B], 403, "egress_private_name"),
    ("metadata.google.internal:80", ["169.254.169.254"], 403, "egress_private_name"),
    ("127.0.0.1:{port}", None, 403, "egress_address"),
    ("127.0.0.1.:{port}", None, 403, "egress_address"),
    ("127.0.0.1.nip.io:{port}", [B], 403, "egress_address"),
    ("mixed.example:{port}", [A, B], 403, "egress_address"),
    ("mixed.example:{port}", [B, A], 403, "egress_address"),
    ("six.example:{port}", ["::1"], 403, "egress_address"),
    ("mapped.example:{port}", ["::ffff:127.0.0.1"], 403, "egress_address"),
    ("nat64.example:{port}", ["64:ff9b::7f00:1"], 403, "egress_address"),
    ("metadata.example:80", ["169.254.169.254"], 403, "egress_address"),
    ("private.example:80", ["10.0.0.1"], 403, "egress_address"),
    ("docker.example:80", ["172.17.0.1"], 403, "egress_address"),
    ("home.example:80", ["192.168.1.1"], 403, "egress_address"),
    ("shared.example:80", ["100.64.0.1"], 403, "egress_address"),
    ("zero.example:{port}", ["0.0.0.0"], 403, "egress_address"),
    ("169.254.169.254:80", None, 403, "egress_address"),
    ("[::1]:{port}", None, 403, "egress_address"),
    ("[::ffff:127.0.0.1]:{port}", None, 403, "egress_address"),
    ("[::ffff:7f00:1]:{port}", None, 403, "egress_address"),
    ("[::]:{port}", None, 403, "egress_address"),
    ("[fe80::1]:{port}", None, 403, "egress_address"),
    ("[fd00:ec2::254]:80", None, 403, "egress_address"),
    ("[2002:7f00:1::]:80", None, 403, "egress_address"),
    ("2130706433:{port}", [B], 400, "egress_odd_host"),
    ("127.1:{port}", [B], 400, "egress_odd_host"),
    ("0177.0.0.1:{port}", [B], 400, "egress_odd_host"),
    ("0x7f.0.0.1:{port}", [B], 400, "egress_odd_host"),
    ("0:{port}", [B], 400, "egress_odd_host"),
]


@pytest.fixture
def refusals() -> Iterator[list[logging.LogRecord]]:
    """Every line that the door logs about a refusal."""
    lines: list[logging.LogRecord] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage() == "refused":
                lines.append(record)

    logger, kept = logging.getLogger("metering_proxy.tenant_side.door"), Kept()
    before, disabled = logger.level, logger.disabled
    logger.addHandler(kept)
    logger.setLevel(logging.INFO)
    logger.disabled = False
    yield lines
    logger.removeHandler(kept)
    logger.setLevel(before)
    logger.disabled = disabled


async def test_target_is_let_out_or_refused_and_nothing_blocked_is_connected_to(
    open_house: House, names: Names, server: Server, refusals: list[logging.LogRecord]
) -> None:
    tenant = await allowed(open_house)
    for asked, found, status, reason in TABLE:
        target = asked.format(port=server.port, stand_in=STAND_IN)
        if found is not None:
            names.say(target.rpartition(":")[0].lower().rstrip("."), found)
        accepted = server.connections
        refusals.clear()
        with counted() as connected:
            answer = await _asked(tenant, target)
        assert answer == (status, reason), target
        reached = [STAND_IN] if status == 200 or reason == "egress_unreachable" else []
        assert connected == reached, target
        assert server.connections - accepted == (status == 200), target
        logged = [(record.__dict__["target"], record.__dict__["reason"]) for record in refusals]
        assert logged == [(target, reason)] * (status != 200)


async def _asked(tenant: Tenant, target: str) -> tuple[int, str]:
    """Status and reason of the answer; a tunnel that opens must carry bytes there and back."""
    async with connecting(tenant, target) as client:
        head = await client.reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.1 200"):
            client.send(b"there and back")
            assert await client.reader.readexactly(14) == b"there and back"
            return 200, ""
        reason = head.partition(b"x-alcove-reason: ")[2].partition(b"\r\n")[0].decode()
        body = await client.reader.read()
        assert f'"code":"{reason}"'.encode() in body
        return int(head.split()[1]), reason


def test_table_has_forty_rows() -> None:
    assert len(TABLE) >= 40


async def test_name_is_looked_up_once_though_its_answer_changes(
    open_house: House, names: Names, server: Server
) -> None:
    tenant = await allowed(open_house)
    names.say("rebinding.example", [STAND_IN], ["127.0.0.1"])
    with counted() as connected:
        async with connecting(tenant, f"rebinding.example:{server.port}") as client:
            await opened(client)
        async with connecting(tenant, f"rebinding.example:{server.port}") as client:
            await refused(client, 403, "egress_address")
    assert connected == [STAND_IN]
    assert names.asked == ["rebinding.example"] * 2


async def test_peer_is_judged_again_once_it_is_connected(server: Server) -> None:
    class Fickle:
        """Lets an address through until it is connected to."""

        def __init__(self) -> None:
            self.judged: list[str] = []

        def refuses(self, address: IPAddress) -> str | None:
            self.judged.append(str(address))
            return "loopback" if len(self.judged) > 1 else None

    policy, names = Fickle(), Names()
    names.say("a.example", [STAND_IN])
    with pytest.raises(AlcoveError) as caught:
        await Outside(names, policy).dial("a.example", server.port)
    assert (caught.value.reason, caught.value.details["kind"]) == ("egress_address", "loopback")
    assert policy.judged == [STAND_IN, STAND_IN]


async def test_next_address_is_tried_when_one_does_not_answer(
    open_house: House, names: Names, server: Server
) -> None:
    tenant = await allowed(open_house)
    names.say("two.example", [NOBODY, STAND_IN])
    with counted() as connected:
        async with connecting(tenant, f"two.example:{server.port}") as client:
            await opened(client)
    assert connected == [NOBODY, STAND_IN]


async def test_lookup_that_never_ends_is_given_up() -> None:
    class Silent(Names):
        """Never answers."""

        async def addresses(self, name: str) -> list[IPAddress]:
            await asyncio.Event().wait()
            return []

    with pytest.raises(AlcoveError) as caught:
        await Outside(Silent(), lookup_s=0.05).dial("a.example", 443)
    assert (caught.value.code, caught.value.reason) == ("timeout", "egress_slow")


async def test_machines_own_resolver_knows_addresses_and_says_no() -> None:
    with counted() as connected:
        for host in ("localhost", "ip6-localhost"):
            with pytest.raises(AlcoveError) as caught:
                await Outside().dial(host, 443)
            assert caught.value.reason in ("egress_address", "egress_unknown_name")
    assert connected == []
