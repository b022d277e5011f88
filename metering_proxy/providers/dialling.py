"""How the meter connects to providers: wherever the operator says, their own network and this machine included,
but never to link-local and metadata addresses. A name is judged by every address that it has, and once more by
the one that was connected to."""

import socket

from infra.kit.errors import AlcoveError
from metering_proxy.egress.addresses import OperatorsOwn
from metering_proxy.egress.outside import Outside, Resolver, SystemResolver

NEVER = "link-local and metadata addresses, such as 169.254.169.254, are never asked"
_SAID = {"egress_address": NEVER, "egress_unknown_name": "there is no host of this name"}


class Dialling:
    """One for all pools of a meter. `resolver`: in the place of the machine's, in tests."""

    def __init__(self, resolver: Resolver | None = None, *, connect_s: float = 5.0) -> None:
        known_here = SystemResolver(whole=False)
        self._outside = Outside(resolver or known_here, OperatorsOwn(), connect_s=connect_s)

    async def dial(self, host: str, port: int) -> socket.socket:
        """A connected socket, as `ProtocolUpstream` wants it. Its error names no host, since tenants see it.

        Raises `unavailable` (reason `unreachable`).
        """
        try:
            return await self._outside.dial(host, port)
        except AlcoveError as error:
            said = _SAID.get(error.reason or "", "nobody answers there")
            raise AlcoveError("unavailable", said, reason="unreachable") from error

    def close(self) -> None:
        """Ends the resolver."""
        self._outside.close()
