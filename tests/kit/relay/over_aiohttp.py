"""The seam over aiohttp: dependable, slower, and what the relay is held against."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from infra.kit import address
from infra.kit.client import UnixConnector
from infra.kit.errors import AlcoveError
from infra.kit.http1.inflow import Sink
from infra.kit.relay.seam import Headers, RelayRequest, RelayResponse, Timeouts


@dataclass
class _Response:
    status: int
    headers: Headers
    _raw: aiohttp.ClientResponse
    _idle_s: float
    _ended: bool = field(default=False)

    async def chunks(self) -> AsyncGenerator[bytes]:
        try:
            while True:
                async with asyncio.timeout(self._idle_s):
                    chunk = await self._raw.content.readany()
                if not chunk:
                    self._ended = True
                    return
                yield chunk
        except TimeoutError as error:
            raise AlcoveError(
                "timeout", f"no byte arrived for {self._idle_s:g} s", reason="idle"
            ) from error
        except aiohttp.ClientError as error:
            raise AlcoveError("bad_gateway", "the answer broke off", reason="cut") from error

    async def push(self, sink: Sink) -> bool:
        async with contextlib.aclosing(self.chunks()) as chunks:
            async for chunk in chunks:
                if not sink(chunk):
                    return False
        return True

    async def close(self) -> None:
        if self._ended:
            self._raw.release()
        else:
            self._raw.close()


class HttpUpstream:
    """An upstream over HTTP/1.1, to a unix socket or a host; connections are pooled here and only here."""

    def __init__(
        self,
        url: str,
        *,
        owner_uid: int | None = None,
        timeouts: Timeouts | None = None,
        limit: int = 512,
        base_path: str = "",
    ) -> None:
        where = address.parse(url)
        self._timeouts = timeouts or Timeouts()
        connector: aiohttp.BaseConnector
        if where.is_unix:
            connector = UnixConnector(str(where.path), owner_uid=owner_uid, limit=limit)
            self._origin = "http://localhost"
        else:
            connector = aiohttp.TCPConnector(limit=limit, ttl_dns_cache=30)
            self._origin = f"{where.scheme}://{where.host}:{where.port}"
        self._base_path = base_path.rstrip("/")
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            max_field_size=65_536,
            max_line_size=65_536,
            read_bufsize=256 * 1024,
            skip_auto_headers=("user-agent", "accept", "accept-encoding", "content-type"),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._timeouts.connect_s),
        )

    async def open(self, request: RelayRequest) -> RelayResponse:
        """See `Upstream.open`."""
        url = URL(f"{self._origin}{self._base_path}{request.target}", encoded=True)
        try:
            async with asyncio.timeout(self._timeouts.first_byte_s):
                raw = await self._session.request(
                    request.method,
                    url,
                    headers=CIMultiDict(request.headers),
                    data=request.body or None,
                    allow_redirects=False,
                )
        except TimeoutError as error:
            raise AlcoveError("timeout", "no answer came", reason="first_byte") from error
        except aiohttp.ClientConnectorError as error:
            raise AlcoveError(
                "unavailable", "nobody answers there", reason="unreachable"
            ) from error
        except (aiohttp.ClientError, ValueError) as error:
            raise AlcoveError(
                "bad_gateway", "the connection broke before an answer", reason="broken"
            ) from error
        headers = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in raw.raw_headers]
        return _Response(raw.status, headers, raw, self._timeouts.idle_s)

    async def close(self) -> None:
        """See `Upstream.close`."""
        await self._session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
