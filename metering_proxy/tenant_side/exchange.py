"""One request and its answer as the door and the call see them: raw ASGI below, no framework."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence

from starlette.types import Receive, Scope, Send

from infra.kit.errors import AlcoveError
from metering_proxy.tenant_side.connection import Listener, TenantConnection

MOST_BODY_BYTES = 34 * 1024 * 1024
_BODY_SILENCE_S = 30.0
_BODY_S = 300.0
_SLOW_CLIENT_S = 120.0


class Gone(Exception):
    """The caller left before its request was whole. Nobody is there to be answered."""


class Budget:
    """Bytes of bodies that this process holds at once."""

    def __init__(self, most_bytes: int = 256 * 1024 * 1024) -> None:
        self._most, self.held_bytes = most_bytes, 0

    def take(self, size: int) -> None:
        """Raises `unavailable` (reason `bodies_in_flight`) where there is no room."""
        if self.held_bytes + size > self._most:
            raise AlcoveError(
                "unavailable", "too many large requests at once", reason="bodies_in_flight"
            )
        self.held_bytes += size

    def give_back(self, size: int) -> None:
        """Makes room again."""
        self.held_bytes -= size


class Body:
    """A whole body that holds its part of the budget until `let_go`."""

    def __init__(self, budget: Budget) -> None:
        self._budget, self._taken = budget, 0
        self.data = b""

    def take(self, size: int) -> None:
        """Takes more of the budget. Raises `too_large`, `unavailable`."""
        if self._taken + size > MOST_BODY_BYTES:
            raise AlcoveError(
                "too_large",
                f"a request may have {MOST_BODY_BYTES >> 20} MiB",
                reason="too_large",
            )
        self._budget.take(size)
        self._taken += size

    def let_go(self) -> None:
        """Gives the bytes and their part of the budget back."""
        self._budget.give_back(self._taken)
        self._taken, self.data = 0, b""


class Exchange:
    """A request that has come in at a tenant's socket."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._connection: TenantConnection = scope["alcove"]
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self._headers: Sequence[tuple[bytes, bytes]] = scope["headers"]
        self.started = False

    @property
    def listener(self) -> Listener:
        """Whose socket it is."""
        return self._connection.listener

    @property
    def gone(self) -> bool:
        """Whether the caller has left."""
        return self._connection.gone

    def headers(self, name: bytes) -> Iterator[str]:
        """The values of a header, as often as it stands there. `name` in small letters."""
        return (value.decode("latin-1") for key, value in self._headers if key == name)

    def header(self, name: bytes) -> str | None:
        """The first value of a header."""
        return next(self.headers(name), None)

    async def read(self, body: Body) -> None:
        """Reads the whole body. Raises `too_large`, `unavailable`, `timeout`, and Gone."""
        declared = self.header(b"content-length") or ""
        reserved = int(declared) if declared.isdigit() else 0
        body.take(reserved)
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(_BODY_S):
                async for part in self._parts():
                    size += len(part)
                    if size > reserved:
                        body.take(size - reserved)
                        reserved = size
                    parts.append(part)
        except TimeoutError:
            raise AlcoveError("timeout", "the body did not come", reason="body_time") from None
        body.data = b"".join(parts)

    async def _parts(self) -> AsyncIterator[bytes]:
        while True:
            async with asyncio.timeout(_BODY_SILENCE_S):
                message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Gone
            if message["body"]:
                yield message["body"]
            if not message.get("more_body"):
                return

    async def start(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Begins the answer."""
        self.started = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, data: bytes) -> None:
        """Sends a part of the answer. A caller that does not read for two minutes is cut off."""
        message = {"type": "http.response.body", "body": data, "more_body": True}
        if not self._connection.flow.write_paused:
            await self._send(message)
            return
        try:
            async with asyncio.timeout(_SLOW_CLIENT_S):
                await self._send(message)
        except TimeoutError:
            self.abort()

    async def end(self, data: bytes = b"") -> None:
        """Ends the answer."""
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    def abort(self) -> None:
        """Cuts the connection in mid-answer."""
        self._connection.abort()
