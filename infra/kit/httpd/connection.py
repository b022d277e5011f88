"""One client's connection: its requests are served one after another by one task, within limits of time.

Input beyond the request under way is held back, never worked on at the same time.
"""

import asyncio
import logging
from collections import deque
from typing import cast

from infra.kit.errors import AlcoveError
from infra.kit.http1.deadline import Deadline
from infra.kit.httpd.owner import Owner
from infra.kit.httpd.reader import Reader
from infra.kit.httpd.refusals import Refusal
from infra.kit.httpd.request import Request

_log = logging.getLogger(__name__)
# For a client that still sends while it is refused: time to read why before the connection breaks.
_LINGER_S = 2.0


class Connection(asyncio.Protocol):
    """Reads, serves, closes. Its task is cancelled when the client leaves an unfinished answer."""

    __slots__ = (
        "_current",
        "_deadline",
        "_deaf",
        "_drain",
        "_held",
        "_loop",
        "_lost",
        "_next",
        "_owner",
        "_pending",
        "_queue",
        "_reader",
        "_task",
        "_transport",
        "capacity",
        "full",
        "limits",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, owner: Owner) -> None:
        self._loop, self._owner = loop, owner
        self.limits, self.capacity = owner.limits, owner.capacity
        self._reader = Reader(
            self,
            began=self._head_began,
            arrived=self._push,
            tunnels=owner.offers_tunnels,
        )
        self._deadline = Deadline(loop, self._expired)
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._task: asyncio.Task[None] | None = None
        self._queue: deque[Request | Refusal] = deque()
        self._current: Request | None = None
        self._next: asyncio.Future[None] | None = None
        self._drain: asyncio.Future[None] | None = None
        self._pending = b""
        self._held = self.full = self._deaf = self._lost = False

    # -- told by the event loop -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if not self._owner.enter(self):
            self._transport.write(Refusal.no_room().answer())
            self._transport.close()
            return
        self._task = self._loop.create_task(self._serve())
        self._task.add_done_callback(self._leave)

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        try:
            self._reader.feed(data)
        except Refusal as refusal:
            self._refuse(refusal)
        # A first request waits in the queue until the task comes round to it; a second is ahead of its turn.
        if len(self._queue) > (self._current is None):
            self.hold()

    def eof_received(self) -> bool:
        return not self._deaf and self._reader.eof()

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = self._deaf = True
        self._deadline.close()
        self.resume_writing()
        if self._reader.incoming is not None:
            self._reader.incoming.inflow.fail(AlcoveError("invalid", "the client left"))
        if self._task is None:
            return
        current = self._current
        if current is not None:
            current.gone = True
        if self._task.done() or (current is not None and current.lasting):
            self._owner.leave(self)
        elif current is None or not current.ended:
            self._task.cancel()

    def pause_writing(self) -> None:
        self.full = True

    def resume_writing(self) -> None:
        self.full = False
        if self._drain is not None and not self._drain.done():
            self._drain.set_result(None)

    # -- asked by requests and their bodies: see Wire and Valve -----------------------------------

    def send(self, data: bytes) -> None:
        if self._pending:
            data, self._pending = self._pending + data, b""
        if not self._transport.is_closing():
            self._transport.write(data)

    def send_soon(self, head: bytes) -> None:
        self._pending = head
        self._loop.call_soon(self._send_pending)

    def _send_pending(self) -> None:
        if self._pending:
            self.send(b"")

    async def drained(self) -> None:
        self._deadline.set(self.limits.write_s)
        self._drain = self._loop.create_future()
        try:
            await self._drain
        finally:
            self._drain = None
            self._deadline.clear()

    async def read(self, request: Request) -> bytes:
        if not request.inflow.ready():
            now = self._loop.time()
            if request.body_by == 0.0:
                request.body_by = now + self.limits.body_s
                if request.wants_continue():
                    self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._deadline.set(request.body_by - now)
        return await request.inflow.read()

    def half_close(self) -> None:
        if not self._transport.is_closing():
            self._transport.write_eof()

    def trust(self) -> None:
        self._owner.trusted(self)

    def hold(self) -> None:
        """Stops reading, so that the sender waits."""
        if not self._held and not self._transport.is_closing():
            self._held = True
            self._transport.pause_reading()

    def flow(self) -> None:
        """Reads on, once nothing that was read is waiting."""
        if self._held and not self._queue and not self._transport.is_closing():
            self._held = False
            self._transport.resume_reading()

    # -- asked by the listener --------------------------------------------------------------------

    def finish(self) -> None:
        """Ends after the answer under way, or now where there is none."""
        if self._current is None and not self._queue:
            self._transport.close()
        elif self._current is not None:
            self._current.keep_alive = False

    def abort(self) -> None:
        """Ends now."""
        self._transport.abort()

    # -- the task ---------------------------------------------------------------------------------

    async def _serve(self) -> None:
        patience_s = self.limits.head_s
        while True:
            item = await self._pop(patience_s)
            if isinstance(item, Refusal):
                self.send(item.answer(head_only=self._reader.asks_for_head))
                break
            await self._answer(item)
            if not item.keep_alive or self._owner.closing or self._lost:
                break
            patience_s = self.limits.idle_s
        self._part()

    async def _pop(self, patience_s: float) -> Request | Refusal:
        if not self._queue:
            self._deadline.set(self.limits.head_s if self._reader.in_head else patience_s)
            self._next = self._loop.create_future()
            try:
                await self._next
            finally:
                self._next = None
        self._deadline.clear()
        item = self._queue.popleft()
        if isinstance(item, Request):
            self._current = item
            if self._owner.closing:
                item.keep_alive = False
            if not item.inflow.holding:
                self.flow()
        return item

    async def _answer(self, request: Request) -> None:
        try:
            await self._owner.handler_of(request)(request)
            if not request.gone:
                request.end()
        except AlcoveError as error:
            await self._complain(request, error)
        except Exception:
            _log.exception("a handler failed")
            await self._complain(
                request,
                AlcoveError("internal", "something went wrong on our side; it has been logged"),
            )
        finally:
            request.release()
            self._current = None

    async def _complain(self, request: Request, error: AlcoveError) -> None:
        if not request.started:
            await request.refuse(error)
        elif not request.ended:
            request.keep_alive = False
            self._send_pending()
            self._transport.abort()  # so that nobody takes half an answer for a whole one

    def _part(self) -> None:
        incoming = self._reader.incoming
        more_to_come = self._deaf or not (incoming is None or incoming.inflow.ended)
        self._deaf = True
        if self._transport.is_closing():
            return
        if more_to_come:
            self._queue.clear()
            self.flow()
            if self._transport.can_write_eof():
                self._transport.write_eof()
            self._deadline.set(_LINGER_S)
        else:
            self._transport.close()
            self._deadline.set(self.limits.write_s)

    def _leave(self, task: asyncio.Task[None]) -> None:
        if self._lost:
            self._owner.leave(self)
        elif task.cancelled() or task.exception() is not None:
            self._transport.abort()

    # -- inside -----------------------------------------------------------------------------------

    def _push(self, item: Request | Refusal) -> None:
        self._queue.append(item)
        if self._next is not None and not self._next.done():
            self._next.set_result(None)

    def _head_began(self) -> None:
        if self._next is not None:
            self._deadline.set(self.limits.head_s)

    def _refuse(self, refusal: Refusal) -> None:
        self._deaf = True
        if self._reader.incoming is not None:
            self._reader.incoming.inflow.fail(refusal.error)
        else:
            self._push(refusal)

    def _expired(self) -> None:
        if self._drain is not None or self._task is None or self._task.done():
            self._transport.abort()
        elif self._current is not None:
            if self._current.inflow.waiting:
                self._current.inflow.fail(
                    AlcoveError("invalid", "the body did not arrive in time", reason="slow_body")
                )
        elif self._reader.in_head:
            self._refuse(Refusal.too_slow())
        else:
            self._transport.close()
