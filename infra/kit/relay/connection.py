"""One connection to an upstream: sends a request, reads its answer, knows whether another may follow.

What the upstream says is hostile until parsed: the size of its head, its framing and its silence are
bounded, and bytes that nobody asked for end the connection.
"""

import asyncio
from typing import Protocol, cast

import httptools

from infra.kit.errors import AlcoveError
from infra.kit.http1.deadline import Deadline
from infra.kit.http1.heads import UNTIL_CLOSED, Malformed, framing
from infra.kit.http1.inflow import Inflow
from infra.kit.relay.answer import Answer
from infra.kit.relay.seam import Timeouts

MOST_HEAD_BYTES = 64 * 1024
MOST_HEADERS = 128
_MOST_INTERIM = 8
# From here on a second system call costs less than copying the body behind its head.
_LARGE_BYTES = 64 * 1024


class Owner(Protocol):
    """Where a connection comes back to."""

    def give(self, connection: "Connection", *, ended: bool) -> None:
        """Its exchange is over; `ended`: the answer was read to its end."""
        ...

    def lost(self, connection: "Connection") -> None:
        """It is closed."""
        ...


class Connection(asyncio.Protocol):
    """At most one exchange at a time, from `send` to its answer's `close`."""

    __slots__ = (
        "_answer",
        "_bodiless",
        "_deadline",
        "_head",
        "_headers",
        "_interim",
        "_keep",
        "_loop",
        "_owner",
        "_parser",
        "_silent_bytes",
        "_timeouts",
        "_transport",
        "_until_closed",
        "began",
        "used",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, timeouts: Timeouts, owner: Owner) -> None:
        self._loop, self._timeouts, self._owner = loop, timeouts, owner
        self._deadline = Deadline(loop, self._expired)
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._answer: Answer | None = None
        self._head: asyncio.Future[Answer] | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._headers: list[tuple[str, str]] = []
        self._bodiless = self._until_closed = self._keep = False
        self._silent_bytes = self._interim = 0
        self.began = False
        self.used = False

    # -- asked by the upstream, its pool and the answer -------------------------------------------

    async def send(self, head: bytes, body: bytes, *, bodiless: bool) -> Answer:
        """Sends a request; returns at the answer's head. `bodiless`: it was a HEAD request.

        Raises `timeout`, `bad_gateway`; `began` then says whether any byte of an answer came.
        """
        self._parser = httptools.HttpResponseParser(self)
        self._answer = Answer(self, Inflow(self))
        self._head = self._loop.create_future()
        self._headers = []
        self._bodiless = bodiless
        self._until_closed = self._keep = self.began = False
        self._silent_bytes = self._interim = 0
        if len(body) > _LARGE_BYTES:
            self._transport.write(head)
            self._transport.write(body)
        else:
            self._transport.write(head + body)
        self._deadline.set(self._timeouts.first_byte_s)
        try:
            return await self._head
        finally:
            self._head = None

    def expect_more(self) -> None:
        """Somebody begins to wait for the next bytes of the body."""
        self._deadline.set(self._timeouts.idle_s)

    def leave(self, answer: Answer) -> None:
        """Nobody reads from `answer` any more. Without effect the second time."""
        if self._answer is answer:
            self._owner.give(self, ended=answer.body.ended)

    def reusable(self) -> bool:
        """Whether the exchange ended so cleanly that another may follow."""
        transport = self._transport
        return self._keep and not transport.is_closing() and transport.get_write_buffer_size() == 0

    def rest(self, seconds: float) -> None:
        """Waits in a pool; closes itself after `seconds`, or when the upstream says anything."""
        self._parser = self._answer = None
        self.used = True
        self._deadline.set(seconds)

    def abort(self) -> None:
        """Closes at once; the upstream sees its end."""
        self._keep = False
        self._deadline.close()
        self._transport.abort()

    # -- told by the event loop -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._parser is None:
            self.abort()
            return
        self.began = True
        self._silent_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._refuse(error)
            return
        # Grows while no part of a body comes: heads, trailers and chunk extensions are all bounded.
        if self._silent_bytes > MOST_HEAD_BYTES:
            self._refuse(Malformed("its head or trailer is too long"))
        elif self._answer is not None and self._answer.body.waiting:
            self._answer.body.flush()
            self.expect_more()

    def eof_received(self) -> bool:
        if self._until_closed and self._answer is not None:
            self._answer.body.end()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._keep = False
        self._deadline.close()
        self._fail(_broken() if self._head is not None else _cut())
        self._parser = None
        self._owner.lost(self)

    def hold(self) -> None:
        """See Valve: the reader is slower than the upstream."""
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def flow(self) -> None:
        """See Valve."""
        if not self._transport.is_closing():
            self._transport.resume_reading()

    # -- told by the parser -----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._answer is not None and self._answer.body.ended:
            self._keep = False  # surplus: whoever sent it may try to forge the next answer

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._answer is not None and self._answer.status:
            return  # a trailer, or the head of surplus
        if len(self._headers) >= MOST_HEADERS:
            raise Malformed("it has too many headers")
        self._headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        answer, parser, headers = self._answer, self._parser, self._headers
        if answer is None or parser is None or answer.status:
            return
        status = parser.get_status_code()
        if status < 200:
            self._skip(status)
            return
        if self._silent_bytes > MOST_HEAD_BYTES and _size(headers) > MOST_HEAD_BYTES:
            raise Malformed("its head is too long")
        length = framing(headers)
        if status in (204, 304):
            self._bodiless = True
        self._until_closed = length == UNTIL_CLOSED and not self._bodiless
        # Only here: after the message's end llhttp has forgotten what the head said.
        self._keep = parser.should_keep_alive() or (self._bodiless and _persists(parser, headers))
        answer.status, answer.headers = status, headers
        self._silent_bytes = 0
        if self._bodiless:
            answer.body.end()
        if self._head is not None and not self._head.done():
            self._head.set_result(answer)

    def on_body(self, data: bytes) -> None:
        assert self._answer is not None
        if self._answer.body.ended:
            self._keep = False
            return
        self._silent_bytes = 0
        self._answer.body.feed(data)

    def on_message_complete(self) -> None:
        if self._answer is not None and self._answer.status:
            self._silent_bytes = 0
            self._answer.body.end()

    # -- inside -----------------------------------------------------------------------------------

    def _skip(self, status: int) -> None:
        self._interim += 1
        if status < 100 or status == 101 or self._interim > _MOST_INTERIM:
            raise Malformed(f"an interim answer {status} has no place here")
        self._headers = []

    def _expired(self) -> None:
        answer = self._answer
        if self._head is not None:
            self._fail(AlcoveError("timeout", "no answer came", reason="first_byte"))
        elif answer is not None and not answer.body.waiting:
            return  # it is the reader who takes its time
        elif answer is not None:
            silence = f"no byte arrived for {self._timeouts.idle_s:g} s"
            self._fail(AlcoveError("timeout", silence, reason="idle"))
        self.abort()

    def _refuse(self, error: Exception) -> None:
        cause = error.__context__ if isinstance(error.__context__, Malformed) else error
        self._fail(
            AlcoveError("bad_gateway", f"the answer is not sound HTTP: {cause}", reason="malformed")
        )
        self.abort()

    def _fail(self, error: AlcoveError) -> None:
        if self._head is not None and not self._head.done():
            self._head.set_exception(error)
        elif self._answer is not None:
            self._answer.body.fail(error)


def _size(headers: list[tuple[str, str]]) -> int:
    return sum(len(name) + len(value) + len(": \r\n") for name, value in headers)


def _persists(parser: httptools.HttpResponseParser, headers: list[tuple[str, str]]) -> bool:
    # llhttp does not know of HEAD, and waits for the end of the connection where no length is said.
    return parser.get_http_version() == "1.1" and not any(
        name.lower() == "connection" and "close" in value.lower() for name, value in headers
    )


def _broken() -> AlcoveError:
    return AlcoveError("bad_gateway", "the connection broke before an answer", reason="broken")


def _cut() -> AlcoveError:
    return AlcoveError("bad_gateway", "the answer broke off", reason="cut")
