"""What counts as the public internet, judged by the address alone."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metering_proxy.egress.addresses import PublicOnly

REFUSED = {
    "0.0.0.0": "unspecified",
    "0.1.2.3": "unspecified",
    "10.0.0.1": "private",
    "100.64.0.1": "shared",
    "100.127.255.255": "shared",
    "100.100.100.200": "metadata",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "168.63.129.16": "metadata",
    "169.254.0.1": "link_local",
    "169.254.169.254": "metadata",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.0.0.192": "metadata",
    "192.0.0.1": "reserved",
    "192.0.2.1": "documentation",
    "192.88.99.1": "translated",
    "192.168.1.1": "private",
    "198.18.0.1": "private",
    "198.51.100.1": "documentation",
    "203.0.113.1": "documentation",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "::ffff:127.0.0.1": "mapped",
    "::ffff:8.8.8.8": "mapped",
    "::127.0.0.1": "mapped",
    "64:ff9b::127.0.0.1": "loopback",
    "64:ff9b::10.0.0.1": "private",
    "64:ff9b::169.254.169.254": "metadata",
    "64:ff9b:1::8.8.8.8": "translated",
    "100::1": "reserved",
    "2001::1": "translated",
    "2001:db8::1": "documentation",
    "2002:7f00:1::": "translated",
    "2002:808:808::": "translated",
    "3fff::1": "documentation",
    "4000::1": "reserved",
    "5f00::1": "reserved",
    "fc00::1": "private",
    "fd00:ec2::254": "metadata",
    "fd20:ce::254": "metadata",
    "fd12:3456::1": "private",
    "fe80::1": "link_local",
    "fe80::1%eth0": "link_local",
    "2606:4700::1%1": "link_local",
    "fec0::1": "private",
    "ff02::1": "multicast",
}
PUBLIC = (
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.0.0.1",
    "128.0.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "223.255.255.255",
    "2606:4700::1111", "2a00:1450::1", "2001:4860:4860::8888", "64:ff9b::8.8.8.8",
)  # fmt: skip


@pytest.mark.parametrize("address", REFUSED)
def test_address_is_refused_when_it_is_not_plainly_public(address: str) -> None:
    assert PublicOnly().refuses(ip_address(address)) == REFUSED[address]


@pytest.mark.parametrize("address", PUBLIC)
def test_address_is_let_through_when_it_is_public(address: str) -> None:
    assert PublicOnly().refuses(ip_address(address)) is None


@given(address=st.ip_addresses())
def test_nothing_that_python_calls_private_is_let_through(
    address: IPv4Address | IPv6Address,
) -> None:
    if PublicOnly().refuses(address) is not None:
        return
    inner = address
    if isinstance(address, IPv6Address) and str(address).startswith("64:ff9b::"):
        inner = IPv4Address(int(address) & 0xFFFF_FFFF)
    assert inner.is_global
    assert not inner.is_multicast
