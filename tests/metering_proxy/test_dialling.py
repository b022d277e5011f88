"""Where providers may be: anywhere that the operator says, but where machines are told about themselves."""

from collections.abc import AsyncIterator
from ipaddress import ip_address
from pathlib import Path

import pytest

from infra.kit.errors import AlcoveError
from metering_proxy import wire
from metering_proxy.egress.addresses import OperatorsOwn
from metering_proxy.providers.dialling import NEVER, Dialling
from tests import scripted as s
from tests.metering_proxy.egress.outdoors import Names, counted
from tests.metering_proxy.house import ROW, House, a_house
from tests.scripted import ScriptedProvider

HOST = "host.docker.internal"


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254", "169.254.0.1", "169.254.170.2", "168.63.129.16", "100.100.100.200", "192.0.0.192",
        "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",
        "::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "64:ff9b:1:2:3:4:a9fe:a9fe", "2002:a9fe:a9fe::1",
        "2001:0:4136:e378:8000:63bf:5601:5601",
    ],
)  # fmt: skip
def test_address_is_refused_when_machines_are_told_there_about_themselves(address: str) -> None:
    assert OperatorsOwn().refuses(ip_address(address)) in ("link_local", "metadata")


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "::1", "10.0.0.7", "172.17.0.1", "192.168.1.20", "100.64.3.4", "fd12::9", "1.1.1.1",
     "::ffff:192.168.1.20", "2606:4700::1111"],
)  # fmt: skip
def test_address_is_let_when_it_is_the_operators_own_or_public(address: str) -> None:
    assert OperatorsOwn().refuses(ip_address(address)) is None


@pytest.fixture
async def names() -> Names:
    return Names()


@pytest.fixture
async def named(tmp_path: Path, names: Names) -> AsyncIterator[House]:
    """A meter in a container: it asks the test for names, and knows its machine as HOST."""
    url = f"sqlite:///{tmp_path}/meter.db"
    async with a_house(tmp_path, url, dialling=Dialling(names), host_name=HOST) as house:
        yield house


def _new(url: str) -> wire.NewProvider:
    return wire.NewProvider(kind="openai_compatible", name="Mine", base_url=url, models=[ROW])


async def _probe(house: House, url: str) -> str:
    made = await house.client.create_provider(_new(url))
    found = await house.client.probe_provider(made.id)
    assert not found.ok
    return found.detail


@pytest.mark.parametrize(
    "url",
    ["http://169.254.169.254/v1", "http://169.254.1.1:11434", "http://[fe80::1]/v1",
     "http://[::ffff:169.254.169.254]/v1", "https://168.63.129.16"],
)  # fmt: skip
async def test_connection_is_refused_when_its_address_is_spelled_link_local(
    house: House, url: str
) -> None:
    with pytest.raises(AlcoveError) as caught:
        await house.client.create_provider(_new(url))
    assert caught.value.details["fields"] == [{"field": "base_url", "problem": NEVER}]
    made = await house.client.create_provider(_new("http://127.0.0.1:9"))
    with pytest.raises(AlcoveError) as caught:
        await house.client.change_provider(made.id, wire.ProviderChange(base_url=url))
    assert caught.value.code == "invalid"


@pytest.mark.parametrize(
    "url", ["http://2852039166/v1", "http://0xa9fea9fe/v1", "http://169.254.43518"]
)
async def test_odd_spelling_of_a_metadata_address_is_never_connected_to(
    house: House, url: str
) -> None:
    with counted() as connected:
        assert await _probe(house, url) == NEVER
    assert not any(peer.startswith("169.254") for peer in connected)


async def test_name_is_refused_when_any_of_its_addresses_is_link_local(
    named: House, names: Names
) -> None:
    names.say("models.example", ["192.168.1.20", "169.254.169.254"])
    with counted() as connected:
        assert await _probe(named, "http://models.example/v1") == NEVER
    assert "192.168.1.20" not in connected


async def test_name_that_turns_to_metadata_later_answers_no_call_and_costs_nothing(
    named: House, names: Names, scripted: ScriptedProvider
) -> None:
    port = int(scripted.url.rpartition(":")[2])
    names.say("models.example", ["127.0.0.1"], ["169.254.169.254"])
    made = await named.client.create_provider(_new(f"http://models.example:{port}"))
    assert (await named.client.probe_provider(made.id)).ok
    tenant = await named.tenant()
    # A new address, so that no connection of the old one is at hand.
    again = wire.ProviderChange(base_url=f"http://models.example:{port}/")
    await named.client.change_provider(made.id, again)
    answer = await tenant.chat()
    assert (answer.status, answer.headers["x-alcove-reason"]) == (503, "unreachable")
    assert b"models.example" not in answer.body
    (entry,) = await named.entries(tenant)
    assert (entry["outcome"], entry["cost_nanos"], entry["charge_nanos"]) == ("not_sent", 0, 0)
    assert len(scripted.requests) == 1  # the test alone


async def test_name_without_a_host_is_told_apart_from_a_server_that_is_down(named: House) -> None:
    assert await _probe(named, "http://nowhere.example/v1") == "there is no host of this name"


async def test_test_at_loopback_names_the_machine_when_the_meter_is_in_a_container(
    named: House,
) -> None:
    detail = await _probe(named, "http://127.0.0.1:9/v1")
    assert detail.startswith("nobody answers there. 127.0.0.1 is the meter's own container")
    assert detail.endswith(f" use http://{HOST}:9/v1 instead")


async def test_test_of_the_machine_says_what_its_server_lacks_when_nobody_answers(
    named: House, names: Names
) -> None:
    names.say(HOST, ["127.0.0.1"])
    assert "not at 127.0.0.1 alone" in await _probe(named, f"http://{HOST}:9/v1")


async def test_server_of_the_machine_answers_under_its_name(
    named: House, names: Names, scripted: ScriptedProvider
) -> None:
    names.say(HOST, ["127.0.0.1"])
    port = scripted.url.rpartition(":")[2]
    made = await named.client.create_provider(_new(f"http://{HOST}:{port}"))
    assert (await named.client.probe_provider(made.id)).ok
    scripted.then(reply=s.text("hello"))
    assert (await (await named.tenant()).chat()).status == 200


async def test_machines_own_resolver_finds_names_of_the_hosts_file(
    scripted: ScriptedProvider,
) -> None:
    port = int(scripted.url.rpartition(":")[2])
    dialling = Dialling()
    sock = await dialling.dial("localhost", port)
    assert sock.getpeername()[1] == port
    sock.close()
    dialling.close()
