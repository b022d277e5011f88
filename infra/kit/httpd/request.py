"""A request as its handler sees it: read the body, answer once. Nothing of sockets here."""

import time
from email.utils import formatdate
from functools import lru_cache
from typing import Protocol

import orjson

from infra.kit.errors import AlcoveError
from infra.kit.http1.heads import CHUNKED, UNTIL_CLOSED, Headers, framing, write_head
from infra.kit.http1.inflow import Inflow
from infra.kit.httpd.limits import Capacity, Limits
from infra.kit.httpd.status import status_line
from infra.kit.httpd.tunnel import Tunnel

_BODILESS = (204, 304)
_LENGTHS = ("content-length", "transfer-encoding")
_JSON = ("content-type", "application/json")


class Wire(Protocol):
    """The connection under a request, as far as the request knows it."""

    limits: Limits
    capacity: Capacity
    full: bool

    def send(self, data: bytes) -> None:
        """Sends bytes to the client."""
        ...

    def send_soon(self, head: bytes) -> None:
        """Sends bytes together with those that follow at once, else by itself: one system call less."""
        ...

    async def drained(self) -> None:
        """Returns once the client has taken most of what is queued; asked only while `full`."""
        ...

    async def read(self, request: "Request") -> bytes:
        """The next bytes of the request's body, empty at its end."""
        ...

    def half_close(self) -> None:
        """Sends nothing more, but goes on reading."""
        ...

    def abort(self) -> None:
        """Ends the connection now."""
        ...

    def trust(self) -> None:
        """The caller is known."""
        ...


class Request:
    """One request. Header names are in lower case, values as they came, the target byte for byte.

    The handler's task is cancelled when the client leaves before the answer has ended, unless it
    chose to `outlive` it. When the handler returns, its answer ends; when it raises before
    `start`, the client gets the coded error; when after, the answer is cut, so that the client sees it.
    """

    __slots__ = (
        "_held_bytes",
        "_left",
        "_read_bytes",
        "_wire",
        "body_by",
        "ended",
        "gone",
        "headers",
        "inflow",
        "keep_alive",
        "lasting",
        "length",
        "method",
        "started",
        "target",
        "version",
    )

    def __init__(
        self,
        wire: Wire,
        inflow: Inflow,
        method: str,
        target: str,
        version: str,
        headers: list[tuple[str, str]],
        length: int,
        *,
        keep_alive: bool,
    ) -> None:
        self._wire, self.inflow = wire, inflow
        self.method, self.target, self.version = method, target, version
        self.headers, self.length, self.keep_alive = headers, length, keep_alive
        self.body_by = 0.0
        self.started = self.ended = False
        self.lasting = self.gone = False
        self._held_bytes = self._read_bytes = 0
        self._left = 0

    def values(self, name: str) -> list[str]:
        """All values of a header; `name` in lower case."""
        return [value for key, value in self.headers if key == name]

    def value(self, name: str) -> str | None:
        """The first of them."""
        for key, value in self.headers:
            if key == name:
                return value
        return None

    def wants_continue(self) -> bool:
        """Whether the client sends its body only when told to."""
        return self.version == "1.1" and any(
            value.lower() == "100-continue" for value in self.values("expect")
        )

    def trust(self) -> None:
        """The caller proved who it is: its connection counts no longer among the unproven."""
        self._wire.trust()

    def outlive(self) -> None:
        """From here on the handler goes on when the client leaves; `gone` says so, and no byte goes anywhere."""
        self.lasting = True

    # -- the body ---------------------------------------------------------------------------------

    async def read(self) -> bytes:
        """The next bytes of the body, empty at its end; the client is held back while nobody takes them.

        Asks a client that waits for it to go on. Raises `too_large`, `invalid` (malformed, or slower
        than `body_s`).
        """
        most = self._wire.limits.body_bytes
        if self.length > most:
            raise _too_large(most)
        chunk = await self._wire.read(self)
        self._read_bytes += len(chunk)
        if self._read_bytes > most:
            raise _too_large(most)
        return chunk

    async def body(self) -> bytes:
        """The whole body; it counts towards the shared capacity until the request is over.

        Raises as `read`, and `unavailable` (reason `busy`) where all listeners hold too much.
        """
        if not self.length:
            return b""
        parts = []
        while chunk := await self.read():
            self._wire.capacity.take_body(len(chunk))
            self._held_bytes += len(chunk)
            parts.append(chunk)
            if self._read_bytes == self.length:
                break
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def release(self) -> None:
        """The request is over; called by the connection."""
        self._wire.capacity.give_body(self._held_bytes)
        self._held_bytes = 0

    # -- the answer -------------------------------------------------------------------------------

    async def respond(self, status: int, headers: Headers = (), body: bytes = b"") -> None:
        """A whole answer in one write. How long it is, is ours to say."""
        said = [item for item in headers if item[0].lower() not in _LENGTHS]
        if status not in _BODILESS:
            said.append(("content-length", str(len(body))))
        head = self._begin(status, said, {name.lower() for name, _ in said})
        self.ended = True
        silent = self.method == "HEAD" or status in _BODILESS
        self._wire.send(head if silent else head + body)
        if self._wire.full:
            await self._wire.drained()

    async def start(self, status: int, headers: Headers = ()) -> None:
        """The head of an answer that is written piece by piece: of the stated length, else chunked."""
        said, names = list(headers), {name.lower() for name, _ in headers}
        self._left = UNTIL_CLOSED
        if "content-length" in names or "transfer-encoding" in names:
            self._left = framing(said)
        if self.method == "HEAD" or status in _BODILESS:
            self._left = 0
        elif self._left == UNTIL_CLOSED and self.version == "1.1":
            self._left = CHUNKED
            said.append(("transfer-encoding", "chunked"))
        elif self._left == UNTIL_CLOSED:
            self.keep_alive = False
        self._wire.send_soon(self._begin(status, said, names))

    def tunnel(self, headers: Headers = ()) -> Tunnel:
        """Accepts a CONNECT: from here on the connection carries what either side sends, and is then over.

        The handler returns when that has ended. It is cancelled when the client breaks the connection.
        """
        if self.method != "CONNECT" or self.started:
            raise RuntimeError("there is no tunnel to accept")
        self._wire.send(write_head("HTTP/1.1 200 Connection established", headers))
        self.started, self._left = True, 0
        return Tunnel(self._wire, self.inflow, self._break)

    async def write(self, chunk: bytes) -> None:
        """The next bytes of the body; waits while the client is slower than us."""
        if not self.write_now(chunk):
            await self.drained()

    async def drained(self) -> None:
        """Returns once the client has taken most of what was written."""
        if self._wire.full:
            await self._wire.drained()

    def write_now(self, chunk: bytes) -> bool:
        """The next bytes of the body. False: the client is slower than us, so wait for `drained`."""
        if not chunk or self.method == "HEAD":
            return True
        if self._left == CHUNKED:
            self._wire.send(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        else:
            self._count(len(chunk))
            self._wire.send(chunk)
        return not self._wire.full

    def end(self) -> None:
        """The answer is whole; what the handler still does costs the client no time.

        Raises RuntimeError where nothing was started, or fewer bytes came than were announced: then
        the connection is cut.
        """
        if self.ended:
            return
        if not self.started:
            raise RuntimeError("the handler gave no answer")
        if self._left > 0:
            raise RuntimeError("fewer bytes than the answer's content-length")
        self.ended = True
        if self._left == CHUNKED:
            self._wire.send(b"0\r\n\r\n")

    async def refuse(self, error: AlcoveError) -> None:
        """Answers with a coded error."""
        headers = [_JSON]
        retry_after = error.details.get("retry_after_s")
        if isinstance(retry_after, int):
            headers.append(("retry-after", str(retry_after)))
        await self.respond(error.status, headers, orjson.dumps(error.body()))

    def _break(self) -> None:
        self.ended = True  # it is the handler itself that ends it, so it is not cancelled for that
        self._wire.abort()

    def _begin(self, status: int, headers: list[tuple[str, str]], names: set[str]) -> bytes:
        if self.started:
            raise RuntimeError("the answer has begun already")
        # A body that was not read stands between this request and the next one.
        if not self.inflow.ended:
            self.keep_alive = False
        if not self.keep_alive:
            headers.append(("connection", "close"))
        if "date" not in names:
            headers.append(("date", _date(int(time.time()))))
        head = write_head(status_line(status), headers)
        self.started = True
        return head

    def _count(self, size: int) -> None:
        if self._left == UNTIL_CLOSED:
            return
        self._left -= size
        if self._left < 0:
            raise RuntimeError("more bytes than the answer's content-length")


@lru_cache(1)
def _date(now_s: int) -> str:
    return formatdate(now_s, usegmt=True)


def _too_large(most: int) -> AlcoveError:
    return AlcoveError("too_large", f"a body may have at most {most} bytes")
