"""Which hosts are model providers': a call to one goes through the meter's own paths, to be metered."""

from functools import cache
from urllib.parse import urlsplit

from metering_proxy.egress.addresses import literal
from metering_proxy.providers.kinds import kinds
from metering_proxy.providers.providers import Providers


def hosts(providers: Providers) -> frozenset[str]:
    """The hosts of every kind of provider that is known, and of the connections that an admin made."""
    made = {host for item in providers.connections if (host := _host(item.base_url))}
    return _known() | made


@cache
def _known() -> frozenset[str]:
    return frozenset(host for kind in kinds().values() if (host := _host(kind.base_url)))


def _host(url: str | None) -> str | None:
    """The host, unless it is an address: what an address may be reached by is addresses.py's matter."""
    host = urlsplit(url).hostname if url else None
    return None if host is None or literal(host) else host
