"""One connection to an upstream: sends a request, reads its answer, knows whether another may follow.

What the upstream says is hostile until parsed: the size of its head, its framing and its silence are
bounded, and bytes that nobody asked for end the connection.
"""

import asyncio
from collections.abc import Callable
from typing import cast

import httptools

from infra.kit.errors import AlcoveError
from infra.kit.http1.deadline import Deadline
from infra.kit.http1.heads import UNTIL_CLOSED, Malformed, framing
from infra.kit.http1.inflow import Inflow
from infra.kit.relay.seam import Timeouts

MOST_HEAD_BYTES = 64 * 1024
MOST_HEADERS = 128
_MOST_INTERIM = 8
# What parts a header's name from its value, and from the next: `: ` and CRLF.
_SEPARATORS = 4


class Answer:
    """A head that arrived, and the body behind it."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, body: Inflow) -> None:
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.body = body


class Connection(asyncio.Protocol):
    """At most one exchange at a time: `send`, `read` to the end, then perhaps `reusable`."""

    __slots__ = (
        "_answer",
        "_bodiless",
        "_deadline",
        "_head",
        "_head_bytes",
        "_interim",
        "_keep",
        "_loop",
        "_lost",
        "_parser",
        "_timeouts",
        "_transport",
        "_until_closed",
        "began",
        "used",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        timeouts: Timeouts,
        lost: Callable[["Connection"], None],
    ) -> None:
        self._loop, self._timeouts, self._lost = loop, timeouts, lost
        self._deadline = Deadline(loop, self._expired)
        self._transport: asyncio.Transport | None = None
        self._answer: Answer | None = None
        self._head: asyncio.Future[Answer] | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._bodiless = self._until_closed = self._keep = False
        self._head_bytes = self._interim = 0
        self.began = False
        self.used = False

    # -- asked by the upstream's pool -------------------------------------------------------------

    async def send(self, head: bytes, body: bytes, *, bodiless: bool) -> Answer:
        """Sends a request; returns at the answer's head. `bodiless`: it was a HEAD request.

        Raises `timeout`, `bad_gateway`; `began` then says whether any byte of an answer came.
        """
        assert self._transport is not None
        self._parser = httptools.HttpResponseParser(self)
        self._answer = Answer(Inflow(self._loop, self))
        self._head = self._loop.create_future()
        self._bodiless = bodiless
        self._until_closed = self._keep = self.began = False
        self._head_bytes = self._interim = 0
        self._transport.write(head)
        if body:
            self._transport.write(body)
        self._deadline.set(self._timeouts.first_byte_s)
        try:
            return await self._head
        finally:
            self._head = None

    async def read(self, answer: Answer) -> bytes:
        """The next bytes of the body, empty at its end. Raises `timeout`, `bad_gateway`."""
        if not answer.body.ready():
            self._deadline.set(self._timeouts.idle_s)
        return await answer.body.read()

    def reusable(self) -> bool:
        """Whether the exchange ended so cleanly that another may follow."""
        return (
            self._keep
            and self._transport is not None
            and not self._transport.is_closing()
            and self._transport.get_write_buffer_size() == 0
        )

    def rest(self, seconds: float) -> None:
        """Waits in a pool; closes itself after `seconds`, or when the upstream says anything."""
        self._parser = self._answer = None
        self.used = True
        self._deadline.set(seconds)

    def abort(self) -> None:
        """Closes at once; the upstream sees its end."""
        self._keep = False
        self._deadline.close()
        if self._transport is not None:
            self._transport.abort()

    # -- told by the event loop -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._parser is None:
            self.abort()
            return
        self.began = True
        self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(_refused(error))
            self.abort()
            return
        # Grows while no part of a body comes: heads, trailers and chunk extensions are all bounded.
        if self._head_bytes > MOST_HEAD_BYTES and not self._ended():
            self._fail(_refused(Malformed("its head or trailer is too long")))
            self.abort()

    def eof_received(self) -> bool:
        if self._until_closed and self._answer is not None:
            self._answer.body.end()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._keep = False
        self._deadline.close()
        self._fail(_broken() if self._head is not None else _cut())
        self._lost(self)

    def hold(self) -> None:
        """See Valve: the reader is slower than the upstream."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def flow(self) -> None:
        """See Valve."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    # -- told by the parser -----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._ended():
            self._keep = False  # surplus bytes: whoever sent them may try to forge the next answer

    def on_header(self, name: bytes, value: bytes) -> None:
        answer = self._answer
        if self._head is None or answer is None or answer.status:
            return  # a trailer, or a head that nobody asked for
        if len(answer.headers) >= MOST_HEADERS:
            raise Malformed("it has too many headers")
        answer.headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        answer, parser = self._answer, self._parser
        if self._head is None or answer is None or parser is None or self._head.done():
            return
        status = parser.get_status_code()
        if sum(len(k) + len(v) + _SEPARATORS for k, v in answer.headers) > MOST_HEAD_BYTES:
            raise Malformed("its head is too long")
        if status < 200:
            self._skip(status, answer)
            return
        length = framing(answer.headers)
        self._bodiless = self._bodiless or status in (204, 304)
        self._until_closed = length == UNTIL_CLOSED and not self._bodiless
        # Only here: after the message's end llhttp has forgotten what the head said.
        self._keep = parser.should_keep_alive() or (self._bodiless and _persists(parser, answer))
        answer.status = status
        if self._bodiless:
            answer.body.end()
        self._head.set_result(answer)

    def on_body(self, data: bytes) -> None:
        assert self._answer is not None
        if self._answer.body.ended:
            self._keep = False
            return
        self._head_bytes = 0
        self._answer.body.feed(data)

    def on_message_complete(self) -> None:
        if self._answer is not None and self._answer.status:
            self._head_bytes = 0
            self._answer.body.end()

    # -- inside -----------------------------------------------------------------------------------

    def _ended(self) -> bool:
        return self._answer is not None and self._answer.body.ended

    def _skip(self, status: int, answer: Answer) -> None:
        self._interim += 1
        if status < 100 or status == 101 or self._interim > _MOST_INTERIM:
            raise Malformed(f"an interim answer {status} has no place here")
        answer.headers.clear()

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

    def _fail(self, error: AlcoveError) -> None:
        if self._head is not None and not self._head.done():
            self._head.set_exception(error)
        elif self._answer is not None:
            self._answer.body.fail(error)


def _persists(parser: httptools.HttpResponseParser, answer: Answer) -> bool:
    # llhttp does not know of HEAD, and waits for the end of the connection where no length is said.
    return parser.get_http_version() == "1.1" and not any(
        name.lower() == "connection" and "close" in value.lower() for name, value in answer.headers
    )


def _broken() -> AlcoveError:
    return AlcoveError("bad_gateway", "the connection broke before an answer", reason="broken")


def _cut() -> AlcoveError:
    return AlcoveError("bad_gateway", "the answer broke off", reason="cut")


def _refused(error: Exception) -> AlcoveError:
    why = error.__context__ if isinstance(error.__context__, Malformed) else error
    return AlcoveError("bad_gateway", f"the answer is not sound HTTP: {why}", reason="malformed")
