"""Which addresses are the public internet. What is not plainly public is refused to tenants, with a word for why;
what an operator names may be private.

Blocks: the registries of special-purpose addresses of IPv4 and IPv6 (RFC 6890 and its updates), and addresses
under which clouds answer their own machines. `ipaddress.is_global` is not asked: it differs between versions.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Protocol

IPAddress = IPv4Address | IPv6Address

_FOUR = tuple(
    (IPv4Network(block), word)
    for block, word in (
        ("0.0.0.0/8", "unspecified"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.169.254/32", "metadata"),
        ("168.63.129.16/32", "metadata"),
        ("192.0.0.192/32", "metadata"),
        ("100.100.100.200/32", "metadata"),
        ("169.254.0.0/16", "link_local"),
        ("10.0.0.0/8", "private"),
        ("172.16.0.0/12", "private"),
        ("192.168.0.0/16", "private"),
        ("100.64.0.0/10", "shared"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "documentation"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("192.88.99.0/24", "translated"),
        ("198.18.0.0/15", "private"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved"),
    )
)
# What lies outside of 2000::/3 and is not named here is reserved.
_SIX = tuple(
    (IPv6Network(block), word)
    for block, word in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::ffff:0:0/96", "mapped"),
        ("::/96", "mapped"),
        ("64:ff9b:1::/48", "translated"),
        ("fd00:ec2::254/128", "metadata"),
        ("fd20:ce::254/128", "metadata"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link_local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
        ("2001::/23", "translated"),
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
        ("2002::/16", "translated"),
    )
)
_PUBLIC_SIX = IPv6Network("2000::/3")
# DNS64 answers with these where a network has no IPv4; the last 32 bits are the IPv4 address (RFC 6052).
_NAT64 = IPv6Network("64:ff9b::/96")
# Where else the last 32 bits may be one: IPv4-mapped, IPv4-compatible, and a network's own translation (RFC 8215).
_ENDS_IN_FOUR = (
    _NAT64,
    *map(IPv6Network, ("::ffff:0:0/96", "::/96", "64:ff9b:1::/48")),
)


class AddressPolicy(Protocol):
    """Says which addresses may be connected to."""

    def refuses(self, address: IPAddress) -> str | None:
        """A word for why not (`loopback`, `private`, …); None where it may."""
        ...


class PublicOnly:
    """The policy for tenants: public unicast addresses, and no others."""

    def refuses(self, address: IPAddress) -> str | None:
        """See AddressPolicy."""
        if isinstance(address, IPv4Address):
            return next((word for block, word in _FOUR if address in block), None)
        if (inner := carried(address)) is not None:
            return self.refuses(inner)
        if address.scope_id is not None:
            return "link_local"
        named = next((word for block, word in _SIX if address in block), None)
        return named if named or address in _PUBLIC_SIX else "reserved"


class OperatorsOwn:
    """The policy for what an operator names: everything but where machines are told about themselves."""

    def refuses(self, address: IPAddress) -> str | None:
        """See AddressPolicy."""
        word = PublicOnly().refuses(_inner(address))
        return word if word in ("link_local", "metadata") else None


def _inner(address: IPAddress) -> IPAddress:
    """The IPv4 address that some networks take an IPv6 address for."""
    if isinstance(address, IPv4Address):
        return address
    if any(address in block for block in _ENDS_IN_FOUR):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.sixtofour or (address.teredo or (address, address))[1]


def carried(address: IPAddress | None) -> IPv4Address | None:
    """The IPv4 address that one of DNS64 stands for; None for any other."""
    if isinstance(address, IPv6Address) and address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None


def literal(host: str) -> IPAddress | None:
    """The address that a host is in its usual spelling; None for anything else, odd spellings included."""
    try:
        return ip_address(host)
    except ValueError:
        return None
