"""A small HTTP/1.1 client for the meter: one connection a request, streamed answers, no TLS in containers.

h11 does the grammar; `infra.kit.unix` opens the socket. No redirects, no cookies, no pool: a unix
connection costs 50 µs, and a fresh one cannot carry a stranger's leftover bytes.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass

import h11

from agent.errors import unreachable
from infra.kit import unix
from infra.kit.address import Address

_READ_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to connect, to the answer's header, and between two pieces of its body."""

    connect_s: float = 5.0
    header_s: float = 120.0
    silence_s: float = 120.0


class Response:
    """An answer whose header has arrived. Read the body once, by `pieces` or `body`."""

    def __init__(self, status: int, headers: Mapping[str, str], connection: "_Connection") -> None:
        self.status = status
        self.headers = headers
        self._connection = connection

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes. Raises ModelError where it is cut or falls silent."""
        while True:
            event = await self._connection.next_event(self._connection.timeouts.silence_s)
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return
            else:
                raise unreachable("network")

    async def body(self, limit_bytes: int = 1 << 20) -> bytes:
        """The whole body, at most `limit_bytes` of it."""
        whole = bytearray()
        async for piece in self.pieces():
            whole += piece
            if len(whole) >= limit_bytes:
                break
        return bytes(whole[:limit_bytes])


class _Connection:
    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, timeouts: Timeouts
    ) -> None:
        self._reader, self._writer = reader, writer
        self._grammar = h11.Connection(our_role=h11.CLIENT)
        self.timeouts = timeouts

    async def send(self, request: h11.Request, body: bytes) -> None:
        """Writes the whole request."""
        for event in (request, h11.Data(data=body), h11.EndOfMessage()):
            self._writer.write(self._grammar.send(event) or b"")
        # A refusal may come, and the peer hang up, before the body was read: its answer still counts.
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    async def next_event(self, timeout_s: float) -> h11.Event | type[h11.PAUSED]:
        """The next part of the answer. Raises ModelError `network` or `timeout`."""
        while True:
            try:
                event = self._grammar.next_event()
                if event is not h11.NEED_DATA:
                    return event  # type: ignore[return-value]
                async with asyncio.timeout(timeout_s):
                    self._grammar.receive_data(await self._reader.read(_READ_BYTES))
            except TimeoutError:
                raise unreachable("timeout") from None
            except (OSError, h11.RemoteProtocolError):
                raise unreachable("network") from None

    def close(self) -> None:
        """Hangs up at once: the peer must notice, so that it stops the model."""
        self._writer.transport.abort()


class Client:
    """Asks one address."""

    def __init__(self, address: Address, timeouts: Timeouts | None = None) -> None:
        self._address = address
        self._timeouts = timeouts or Timeouts()

    @contextlib.asynccontextmanager
    async def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes = b""
    ) -> AsyncIterator[Response]:
        """An open answer; the connection is closed when the block is left, however that is.

        Raises ModelError `unavailable` (nobody there) and `timeout`.
        """
        reader, writer = await self._connect()
        connection = _Connection(reader, writer, self._timeouts)
        try:
            await connection.send(self._head(method, path, headers, len(body)), body)
            while True:
                event = await connection.next_event(self._timeouts.header_s)
                if isinstance(event, h11.Response):
                    break
                if not isinstance(event, h11.InformationalResponse):
                    raise unreachable("network")
            names = {
                name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers
            }
            yield Response(event.status_code, names, connection)
        finally:
            connection.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = self._address
        try:
            async with asyncio.timeout(self._timeouts.connect_s):
                if address.path is not None:
                    return await unix.open_stream(address.path, timeout_s=self._timeouts.connect_s)
                return await asyncio.open_connection(
                    address.host, address.port, ssl=address.scheme == "https" or None
                )
        except TimeoutError:
            raise unreachable("timeout") from None
        except OSError:
            raise unreachable("network") from None

    def _head(self, method: str, path: str, headers: Mapping[str, str], length: int) -> h11.Request:
        host = "meter" if self._address.is_unix else f"{self._address.host}:{self._address.port}"
        lines = [("host", host), ("content-length", str(length)), ("connection", "close")]
        return h11.Request(method=method, target=path, headers=[*lines, *headers.items()])
