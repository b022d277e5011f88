"""Each part of an answer on its way to the caller, while a copy is read. It runs as bytes arrive, so nothing waits
here: what has to be waited for ends the round, and sending.py begins the next one."""

import time

from metering_proxy.ledger.ledger import Ledger
from metering_proxy.telemetry import Telemetry
from metering_proxy.tenant_side.call_state import Call
from metering_proxy.tenant_side.exchange import Exchange
from metering_proxy.tenant_side.outlet import Outlet
from metering_proxy.tenant_side.tee import Tee


class Pump:
    """Of one attempt. `drain_s`: for how long an answer whose caller has left is read, before it is `given_up`."""

    __slots__ = (
        "_call",
        "_drain_s",
        "_exchange",
        "_first",
        "_found",
        "_ledger",
        "_left_s",
        "_noted",
        "_tee",
        "_telemetry",
        "given_up",
        "outlet",
    )

    def __init__(
        self,
        call: Call,
        tee: Tee,
        outlet: Outlet,
        exchange: Exchange,
        ledger: Ledger,
        telemetry: Telemetry,
        drain_s: float,
    ) -> None:
        self._call, self._tee, self.outlet, self._exchange = call, tee, outlet, exchange
        self._ledger, self._telemetry, self._drain_s = ledger, telemetry, drain_s
        self._found = call.reader.found
        self._first, self._noted, self._left_s = True, False, 0.0
        self.given_up = False

    def take(self, chunk: bytes) -> bool:
        """Passes a part on. False where something has to be waited for, or decided, before the next one."""
        out = self._tee.feed(chunk)
        if self._first:
            self._first = False
            self._telemetry.ttft.observe(time.perf_counter() - self._call.began_s)
        if not self._noted and self._found.text_bytes:
            self._noted = True
            self._call.hold.seen = self._found.output_estimate
            self._ledger.first_output(self._call.hold)
        if not self.outlet.holding:
            return self._exchange.write_now(out)
        self.outlet.hold(out)
        undecided = not (self._found.failed or self.outlet.decided(self._found))
        return undecided and not self._exchange.gone

    def reads_on(self) -> bool:
        """Whether the answer is still read although its caller has left."""
        now_s = time.monotonic()
        self._left_s = self._left_s or now_s
        self.given_up = now_s - self._left_s > self._drain_s
        return not self.given_up
