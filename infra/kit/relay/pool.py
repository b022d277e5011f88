"""Connections that are in use or rest, of one upstream and of nobody else."""

import asyncio
from collections.abc import Awaitable, Callable

from infra.kit.errors import AlcoveError
from infra.kit.relay.connection import Connection


class Pool:
    """At most `limit` connections. The one used last is taken first, so that the others may expire."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        *,
        limit: int,
        rest_s: float,
        wait_s: float,
    ) -> None:
        self._connect, self._rest_s, self._wait_s = connect, rest_s, wait_s
        self._slots = asyncio.Semaphore(limit)
        self._resting: list[Connection] = []
        self._taken: set[Connection] = set()
        self._closed = False

    @property
    def resting(self) -> int:
        """Connections that wait for their next use."""
        return len(self._resting)

    @property
    def in_use(self) -> int:
        """Connections that somebody took and did not give back."""
        return len(self._taken)

    async def take(self, *, fresh: bool = False) -> Connection:
        """A connection for one exchange, to be given back whatever happens; `fresh`: a new one.

        Raises `unavailable`: reason `saturated` when all stayed in use, else what connecting raises.
        """
        await self._slot()
        try:
            self._check_open()
            connection = (None if fresh else self._rested()) or await self._connect()
        except BaseException:
            self._slots.release()
            raise
        self._taken.add(connection)
        try:
            self._check_open()
        except AlcoveError:
            self.give(connection, ended=False)
            raise
        return connection

    def give(self, connection: Connection, *, ended: bool) -> None:
        """Takes a connection back: to rest where the exchange `ended` and it is clean, else closed."""
        if connection not in self._taken:
            return
        self._taken.discard(connection)
        self._slots.release()
        if ended and not self._closed and connection.reusable():
            self._resting.append(connection)
            connection.rest(self._rest_s)
        else:
            connection.abort()

    def lost(self, connection: Connection) -> None:
        """A connection ended; it rests no more."""
        if connection in self._resting:
            self._resting.remove(connection)

    def close(self) -> None:
        """Ends every connection; who still reads from one gets `bad_gateway`."""
        self._closed = True
        for connection in (*self._resting, *self._taken):
            connection.abort()

    def _check_open(self) -> None:
        if self._closed:
            raise AlcoveError("unavailable", "the upstream was closed", reason="closed")

    def _rested(self) -> Connection | None:
        while self._resting:
            connection = self._resting.pop()
            if connection.reusable():
                return connection
            connection.abort()
        return None

    async def _slot(self) -> None:
        if not self._slots.locked():
            await self._slots.acquire()  # does not wait
            return
        try:
            async with asyncio.timeout(self._wait_s):
                await self._slots.acquire()
        except TimeoutError as error:
            raise AlcoveError(
                "unavailable", "every connection to it is in use", reason="saturated"
            ) from error
