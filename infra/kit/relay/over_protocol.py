"""The seam straight on the event loop's protocols: the fast one, for the data paths.

A request is one write; an answer is parsed once, by llhttp, and its body handed on as it arrives.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from infra.kit import address, unix
from infra.kit.errors import AlcoveError
from infra.kit.http1.heads import is_token, write_head
from infra.kit.relay.connection import Connection
from infra.kit.relay.pool import Pool
from infra.kit.relay.seam import RelayRequest, RelayResponse, Timeouts

# Written by us for the one connection, so the caller's are dropped.
_OURS = frozenset(("connection", "content-length", "expect", "transfer-encoding"))
_TARGET = re.compile(r"[\x21-\x7e\x80-\xff]+")
_SAFE = ("GET", "HEAD")
_WITH_BODY = ("POST", "PUT", "PATCH")
Dial = Callable[[str, int], Awaitable[socket.socket]]


class ProtocolUpstream:
    """An upstream over HTTP/1.1, to a unix socket or a host; connections are pooled here and only here.

    `rest_s`: how long an unused connection is kept. `tls`: for https, in place of the default
    context. `dial`: how a host and a port become a connected socket, in place of asyncio's own way.
    Belongs to the event loop in which it is first used.
    """

    def __init__(
        self,
        url: str,
        *,
        owner_uid: int | None = None,
        timeouts: Timeouts | None = None,
        limit: int = 512,
        base_path: str = "",
        rest_s: float = 15.0,
        tls: ssl.SSLContext | None = None,
        dial: Dial | None = None,
    ) -> None:
        self._where, self._owner_uid = address.parse(url), owner_uid
        self._timeouts = timeouts or Timeouts()
        self._base_path = base_path.rstrip("/")
        self._tls, self._dial = tls, dial
        self._host = _host(self._where)
        self.pool = Pool(self._connect, limit=limit, rest_s=rest_s, wait_s=self._timeouts.connect_s)

    async def open(self, request: RelayRequest) -> RelayResponse:
        """See `Upstream.open`. Raises `invalid` for a request that cannot be written down.

        `unavailable` with reason `saturated`: all connections stayed in use; nothing was sent.
        """
        head = self._head(request)
        connection = await self.pool.take()
        try:
            return await self._send(connection, head, request)
        except AlcoveError as error:
            if not _stale(connection, error) or not _replayable(request):
                raise
        return await self._send(await self.pool.take(fresh=True), head, request)

    async def close(self) -> None:
        """See `Upstream.close`."""
        self.pool.close()

    async def _send(
        self, connection: Connection, head: bytes, request: RelayRequest
    ) -> RelayResponse:
        try:
            return await connection.send(head, request.body, bodiless=request.method == "HEAD")
        except BaseException:
            self.pool.give(connection, ended=False)
            raise

    def _head(self, request: RelayRequest) -> bytes:
        headers, named_host = [], False
        for item in request.headers:
            lower = item[0].lower()
            named_host = named_host or lower == "host"
            if lower not in _OURS:
                headers.append(item)
        if not named_host:
            headers.insert(0, ("host", self._host))
        if request.body or request.method in _WITH_BODY:
            headers.append(("content-length", str(len(request.body))))
        target = self._base_path + request.target
        if not _TARGET.fullmatch(target) or not is_token(request.method):
            raise AlcoveError("invalid", "a method is a word, and a target holds no spaces")
        return write_head(f"{request.method} {target} HTTP/1.1", headers)

    async def _connect(self) -> Connection:
        try:
            async with asyncio.timeout(self._timeouts.connect_s):
                if self._where.path is not None:
                    return await self._over_unix(self._where.path)
                return await self._over_tcp(str(self._where.host), self._where.port or 0)
        except (OSError, TimeoutError) as error:
            raise AlcoveError(
                "unavailable", "nobody answers there", reason="unreachable"
            ) from error

    async def _over_unix(self, path: Path) -> Connection:
        sock = await unix.connect(
            path, owner_uid=self._owner_uid, timeout_s=self._timeouts.connect_s
        )
        loop = asyncio.get_running_loop()
        try:
            _, connection = await loop.create_unix_connection(self._made, sock=sock)
        except BaseException:
            sock.close()
            raise
        return connection

    async def _over_tcp(self, host: str, port: int) -> Connection:
        loop = asyncio.get_running_loop()
        tls = self._context()
        if self._dial is None:
            _, connection = await loop.create_connection(self._made, host, port, ssl=tls)
            return connection
        sock = await self._dial(host, port)
        try:
            _, connection = await loop.create_connection(
                self._made, sock=sock, ssl=tls, server_hostname=host if tls else None
            )
        except BaseException:
            sock.close()
            raise
        return connection

    def _made(self) -> Connection:
        return Connection(asyncio.get_running_loop(), self._timeouts, self.pool)

    def _context(self) -> ssl.SSLContext | None:
        if self._where.scheme != "https":
            return None
        if self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _stale(connection: Connection, error: AlcoveError) -> bool:
    return connection.used and not connection.began and error.reason == "broken"


def _replayable(request: RelayRequest) -> bool:
    return request.method in _SAFE if request.replayable is None else request.replayable


def _host(where: address.Address) -> str:
    if where.is_unix:
        return "localhost"
    host = f"[{where.host}]" if where.host and ":" in where.host else str(where.host)
    standard = {"http": 80, "https": 443}[where.scheme]
    return host if where.port == standard else f"{host}:{where.port}"
