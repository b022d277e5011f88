"""From a name to a connection: resolved once, every address judged, one of them connected to by number.

No name is looked up again between the judgement and the connection, and the connection's own peer is judged once
more, so an answer that changes (rebinding) changes nothing.
"""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Protocol

from infra.kit.errors import AlcoveError
from metering_proxy.egress.addresses import AddressPolicy, IPAddress, PublicOnly, literal

_LOOKUPS_AT_ONCE = 32
_MOST_TRIED = 4


class Resolver(Protocol):
    """Where addresses of a name come from."""

    async def addresses(self, name: str) -> Sequence[IPAddress]:
        """Every address, in the order in which they are best tried. Raises OSError where there is none."""
        ...

    def close(self) -> None:
        """Ends it."""
        ...


class SystemResolver:
    """The machine's resolver, in threads of its own: a slow name server holds up nobody else's threads.

    `whole`: a name is taken as whole, no search domain is put behind it; `/etc/hosts` is not asked then.
    """

    def __init__(self, *, whole: bool = True) -> None:
        self._end = "." if whole else ""
        self._threads = ThreadPoolExecutor(_LOOKUPS_AT_ONCE, thread_name_prefix="lookup")

    async def addresses(self, name: str) -> Sequence[IPAddress]:
        """See Resolver."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._threads, _look_up, name + self._end, socket.AF_UNSPEC, socket.SOCK_STREAM
        )
        return list(dict.fromkeys(found))

    def close(self) -> None:
        """See Resolver. Lookups that still run are not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(name: str, family: int, kind: int) -> list[IPAddress]:
    return [ip_address(str(found[4][0])) for found in socket.getaddrinfo(name, None, family, kind)]


class Outside:
    """The only place from which the meter connects to where a tenant wants to go, and, through
    providers/dialling.py, to providers.

    For tenants `resolver`, `policy` and `tls` (for https, in the place of the default context) are handed in by
    tests alone: no setting can widen what may be reached. `lookup_s`, `connect_s`: the most that either may take.
    """

    def __init__(
        self,
        resolver: Resolver | None = None,
        policy: AddressPolicy | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        lookup_s: float = 5.0,
        connect_s: float = 10.0,
    ) -> None:
        self._resolver, self._policy = resolver or SystemResolver(), policy or PublicOnly()
        self.tls = tls
        self._lookup_s, self._connect_s = lookup_s, connect_s

    async def dial(self, host: str, port: int) -> socket.socket:
        """A connected, non-blocking socket to `host`, which is a name or an address.

        Raises `forbidden` (reason `egress_address`, details.kind says which kind) where any address of it may not
        be connected to, `bad_gateway` (`egress_unknown_name`, `egress_unreachable`), `timeout` (`egress_slow`).
        """
        addresses = await self._judged(host)
        try:
            return await self._first(addresses[:_MOST_TRIED], port)
        except TimeoutError:
            raise AlcoveError("timeout", "the host did not answer", reason="egress_slow") from None

    def close(self) -> None:
        """Ends the resolver."""
        self._resolver.close()

    async def _judged(self, host: str) -> Sequence[IPAddress]:
        address = literal(host)
        if address is not None:
            self._judge(address)
            return [address]
        try:
            async with asyncio.timeout(self._lookup_s):
                found = await self._resolver.addresses(host)
        except TimeoutError:
            raise AlcoveError(
                "timeout", "the name was not found in time", reason="egress_slow"
            ) from None
        except (OSError, UnicodeError):
            found = []
        if not found:
            raise AlcoveError(
                "bad_gateway", "there is no host of this name", reason="egress_unknown_name"
            )
        for address in found:
            self._judge(address)
        return found

    def _judge(self, address: IPAddress) -> None:
        kind = self._policy.refuses(address)
        if kind is not None:
            raise AlcoveError(
                "forbidden",
                "only public addresses can be reached",
                reason="egress_address",
                kind=kind,
            )

    async def _first(self, addresses: Sequence[IPAddress], port: int) -> socket.socket:
        """Tries one after another, each for its share of the time. Raises TimeoutError where all were silent."""
        silent = 0
        for address in addresses:
            try:
                async with asyncio.timeout(self._connect_s / len(addresses)):
                    return await self._connected(address, port)
            except TimeoutError:
                silent += 1
            except OSError:
                continue
        if silent == len(addresses):
            raise TimeoutError
        raise AlcoveError(
            "bad_gateway", "the host takes no connection", reason="egress_unreachable"
        )

    async def _connected(self, address: IPAddress, port: int) -> socket.socket:
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            await asyncio.get_running_loop().sock_connect(sock, (str(address), port))
            self._judge(ip_address(sock.getpeername()[0]))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException:
            sock.close()
            raise
        return sock
