"""Where an answer goes: to its caller as it comes, or held back until it has said something.

It is held back only while another model could be asked instead: an error that comes first, with a 200, is then no
answer yet.
"""

from collections.abc import Sequence

from metering_proxy.tenant_side.exchange import Exchange
from metering_proxy.wires.wire import Found

MOST_HELD_BYTES = 8 * 1024
# An answer that is no stream is of use only when it is whole, so it loses little by waiting.
MOST_HELD_WHOLE_BYTES = 64 * 1024


class Outlet:
    """One answer's way out. `holding`: nothing of it has gone to the caller, and at most so many bytes wait."""

    def __init__(
        self,
        exchange: Exchange,
        status: int,
        headers: Sequence[tuple[str, str]],
        *,
        most_held_bytes: int,
    ) -> None:
        self._exchange, self._status, self._headers = exchange, status, headers
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._most_held_bytes = most_held_bytes
        self.holding = most_held_bytes > 0

    def hold(self, data: bytes) -> None:
        """Keeps the next bytes of the answer back."""
        self._held.append(data)
        self._held_bytes += len(data)

    def decided(self, found: Found) -> bool:
        """Whether the answer has said enough to be its caller's."""
        said = found.text_bytes or found.finished
        return bool(said) or self._held_bytes > self._most_held_bytes

    async def open(self) -> None:
        """From here on the answer is its caller's, with all that was held back."""
        self.holding = False
        await self._exchange.start(self._status, self._headers)
        await self._exchange.write(b"".join(self._held))
        self._held.clear()
