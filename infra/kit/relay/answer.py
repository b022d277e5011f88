"""An answer of an upstream, from its head on. What its connection does meanwhile is connection.py's matter."""

from collections.abc import AsyncIterator
from typing import Protocol, Self

from infra.kit.http1.inflow import Inflow, Sink
from infra.kit.relay.seam import Headers


class Wire(Protocol):
    """The connection that an answer comes from."""

    def expect_more(self) -> None:
        """Somebody begins to wait for the next bytes of the body."""
        ...

    def leave(self, answer: "Answer") -> None:
        """Nobody reads from `answer` any more. Without effect the second time."""
        ...


class Answer:
    """An answer whose head arrived: see RelayResponse. Its own iterator, since an async generator costs
    more than its work."""

    __slots__ = ("_connection", "body", "headers", "status")

    def __init__(self, connection: Wire, body: Inflow) -> None:
        self._connection, self.body = connection, body
        self.status = 0
        self.headers: Headers = []

    def chunks(self) -> AsyncIterator[bytes]:
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if not self.body.ready():
            self._connection.expect_more()
        chunk = await self.body.read()
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def push(self, sink: Sink) -> bool:
        if not self.body.ready():
            self._connection.expect_more()
        return await self.body.push(sink)

    async def close(self) -> None:
        self._connection.leave(self)
