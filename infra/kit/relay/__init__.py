"""The relay: `Upstream.open(request) → response`, bytes in, the same bytes out.

One interface for the gateway (browser → agent) and the meter (agent → provider), and `ProtocolUpstream`
behind it, written straight on the event loop's protocols. The tests hold a second one against it, on
aiohttp, under the same conformance suite. Nothing here knows of tenants or money. Whoever opens a response
closes it, whatever happens above.
"""

from infra.kit.relay.over_protocol import ProtocolUpstream
from infra.kit.relay.seam import (
    HOP_BY_HOP,
    Headers,
    RelayRequest,
    RelayResponse,
    Timeouts,
    Upstream,
    end_to_end,
)

__all__ = [
    "HOP_BY_HOP",
    "Headers",
    "ProtocolUpstream",
    "RelayRequest",
    "RelayResponse",
    "Timeouts",
    "Upstream",
    "end_to_end",
]
