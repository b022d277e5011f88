"""The way into the ledger: hold, keep alive, go elsewhere, settle, sweep. No reports (usage.py, verify.py)."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from infra.kit import ids
from infra.kit.clock import Clock, SystemClock
from infra.kit.db import Database
from metering_proxy.ledger.leaps import Leaps
from metering_proxy.ledger.opening import store
from metering_proxy.ledger.ops import (
    Correct,
    Refused,
    Release,
    Renew,
    Reroute,
    Reserve,
    Reserved,
    Settle,
    Sweep,
    Swept,
)
from metering_proxy.ledger.writer import Writer

_log = logging.getLogger(__name__)
SETTLE_DEADLINE_S = 10.0


@dataclass(slots=True)
class Hold:
    """A running call's hold. `seen`: output tokens forwarded so far, as estimated; `look`: who forwards them."""

    request_id: str
    limit: int
    charge_held_nanos: int
    seen: int = 0
    look: Callable[[], int] | None = None

    def read(self) -> None:
        """Brings `seen` up to date."""
        if self.look is not None:
            self.seen = self.look()


class Ledger:
    """Holds and entries of one meter process. `writer`: instead of one of its own for `db`."""

    def __init__(
        self,
        db: Database,
        *,
        lease_s: float = 60.0,
        clock: Clock | None = None,
        writer: Writer | None = None,
    ) -> None:
        self._writer = writer or Writer(store(db, worker=ids.ulid(), lease_s=lease_s, clock=clock))
        self._lease_s = lease_s
        self._leaps = Leaps(lease_s, (clock or SystemClock()).monotonic_s)
        self._running: dict[str, Hold] = {}
        self._renewals: asyncio.Task[None] | None = None

    @property
    def running(self) -> dict[str, Hold]:
        """The holds of calls that run in this process."""
        return self._running

    def start(self) -> None:
        """Begins to write and to renew leases, in tasks of the running loop."""
        self._writer.start()
        self._renewals = asyncio.create_task(self._renew(), name="ledger-renewals")

    async def close(self) -> None:
        """Commits what waits and stops."""
        if self._renewals is not None:
            self._renewals.cancel()
        await self._writer.close(SETTLE_DEADLINE_S)

    async def reserve(self, op: Reserve) -> Hold | Refused:
        """Holds the most that a call can use, or says which limit has no room for it. From then on the call counts
        as sent: who does not send it releases it.

        Raises `unavailable` (reason `ledger`).
        """
        waiting = self._writer.submit(op)
        try:
            answer: Reserved | Refused = await waiting
        except asyncio.CancelledError:
            # The hold may stand already although its caller left before hearing of it.
            told = not waiting.cancelled() and waiting.exception() is None
            if told and isinstance(waiting.result(), Reserved):
                self._writer.submit(Release(op.request_id))
            raise
        if isinstance(answer, Refused):
            return answer
        hold = Hold(op.request_id, answer.limit, answer.charge_held_nanos)
        self._running[op.request_id] = hold
        return hold

    async def reroute(self, op: Reroute) -> bool:
        """Enters an attempt that failed, durably, before the next one is made. False: the call had ended.

        Raises `unavailable` (reason `ledger`).
        """
        rerouted: bool = await self._writer.submit(op)
        return rerouted

    def first_output(self, hold: Hold) -> asyncio.Future[bool]:
        """Writes down that output has begun to flow, and `hold.seen` of it. Happens whether or not it is awaited.

        What follows until the first renewal is within what recovery adds for one.
        """
        return self._writer.submit(Renew(((hold.request_id, hold.seen),)))

    def release(self, hold: Hold) -> asyncio.Future[bool]:
        """Gives a hold back uncharged: nothing was sent. Happens whether or not the answer is awaited."""
        self._running.pop(hold.request_id, None)
        return self._writer.submit(Release(hold.request_id))

    def settle(self, op: Settle) -> asyncio.Future[bool]:
        """Charges an ended call, once. Happens whether or not the answer is awaited."""
        self._running.pop(op.request_id, None)
        return self._writer.submit(op)

    async def correct(self, op: Correct) -> bool:
        """Enters what an ended call costs otherwise than was entered. Raises `unavailable` (reason `ledger`)."""
        done: bool = await self._writer.submit(op)
        return done

    async def sweep(self) -> Swept:
        """Ends calls whose process is gone; those of this one it knows to live. Raises `unavailable`."""
        total = Swept()
        while True:
            op = Sweep(mine=self._seen(), expected_at=self._leaps.expected_at())
            swept: Swept = await self._writer.submit(op)
            if self._leaps.saw(swept.at):
                _log.warning("the clock was set ahead")
                await self._renew_all()
            total = Swept(total.charged + swept.charged, total.cut + swept.cut,
                          total.kept + swept.kept, swept.at)  # fmt: skip
            if not swept.charged and not swept.cut and not swept.kept:
                break
        if total.charged:
            _log.warning("swept", extra={"charged": total.charged})
        if total.cut:
            _log.warning("the clock was set back", extra={"leases_cut": total.cut})
        if total.kept:
            _log.warning("leases of living calls had run out", extra={"kept": total.kept})
        return total

    async def _renew(self) -> None:
        """Keeps every running call's lease alive, three times in its length."""
        while True:
            await asyncio.sleep(self._lease_s / 3)
            await self._renew_all()

    async def _renew_all(self) -> None:
        """Begins the leases anew, and writes down what was forwarded. To find that out takes time with a long
        stream, so events of all streams pass between one call and the next."""
        for hold in list(self._running.values()):
            hold.read()
            await asyncio.sleep(0)
        if self._running:
            self._writer.submit(Renew(self._seen()))

    def _seen(self) -> tuple[tuple[str, int], ...]:
        """The calls that run here, and what was last read of each one's output."""
        return tuple((hold.request_id, hold.seen) for hold in self._running.values())
