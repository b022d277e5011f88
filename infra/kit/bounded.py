"""uvicorn's HTTP/1.1 with the bounds that it lacks: a head's size and time, a body's time, a reader's patience.

What the bytes mean is llhttp's and the app's to judge. Data paths have `infra.kit.httpd` instead.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from infra.kit.http1.deadline import Deadline
from infra.kit.httpd.limits import Limits


class BoundedProtocol(HttpToolsProtocol):
    """One connection. A head too long or too late, or a body that does not come, closes it.

    Trailers are dropped: uvicorn would add them to the headers of a request that has begun.
    """

    limits = Limits()

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._patience = Deadline(self.loop, self._give_up)
        self._drain = Deadline(self.loop, self._give_up)
        self._silent_bytes = 0
        self._in_head = self._in_message = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._patience.set(self.limits.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._patience.close()
        self._drain.close()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if not self._in_message and not self._silent_bytes:
            self._patience.set(self.limits.head_s)  # also for what never becomes a head
        self._silent_bytes += len(data)
        super().data_received(data)
        # Grows while no part of a body comes: heads, trailers and chunk extensions are all bounded.
        if self._silent_bytes > self.limits.head_bytes and not self.transport.is_closing():
            self.send_400_response("The request's head is too long.")

    def on_message_begin(self) -> None:
        self._in_head = self._in_message = True
        self._patience.set(self.limits.head_s)
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._silent_bytes = 0
        self._patience.set(self.limits.body_s)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._silent_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_message = False
        self._silent_bytes = 0
        if self.cycle is not None and self.cycle.response_complete:
            self._patience.set(self.limits.head_s)  # uvicorn's own wait ended as more bytes came
        else:
            self._patience.clear()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Where that was in mid-body, what still comes is taken and dropped for a while.

        Closing at once would reset the connection and take the answer from who is still sending.
        """
        if self._in_message:
            self._patience.set(self.limits.head_s)
        super().on_response_complete()

    def pause_writing(self) -> None:
        self._drain.set(self.limits.write_s)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._drain.clear()
        super().resume_writing()

    def _give_up(self) -> None:
        self.transport.abort()


def bounded(limits: Limits) -> type[BoundedProtocol]:
    """The protocol with these limits, for uvicorn's `http`; it makes one for each connection."""
    return type("Bounded", (BoundedProtocol,), {"limits": limits})
